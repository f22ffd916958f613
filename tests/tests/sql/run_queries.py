"""Runs docs/sql unchanged, in a session's directory, and prints what comes out as one JSON object.

Arguments: the directory of the queries, then optionally statements to run before session.sql.
"""

import json
import pathlib
import sys

import duckdb

queries = pathlib.Path(sys.argv[1])
connection = duckdb.connect()
for statement in sys.argv[2:]:
    connection.execute(statement)
connection.execute((queries / "session.sql").read_text())
answers = {}
for path in sorted(queries.glob("*.sql")):
    if path.name == "session.sql":
        continue
    result = connection.execute(path.read_text())
    columns = [column[0] for column in result.description]
    answers[path.stem] = [dict(zip(columns, row)) for row in result.fetchall()]
footer = connection.execute(
    "SELECT DISTINCT decode(key), decode(value) FROM parquet_kv_metadata('*/*.parquet')"
    " WHERE decode(key) NOT IN ('cohtrace.segment', 'cohtrace.seal')"
)
answers["footer"] = dict(footer.fetchall())
json.dump(answers, sys.stdout)

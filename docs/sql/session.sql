-- Opens a session and says of each access which memory it is for. Run it first, in the session's directory
-- (NAME.coh); the other queries here read what it makes. DuckDB 1.4 or newer.
--
-- Before it, optionally:
--   SET VARIABLE line_bytes = 128;            bytes of a line; 64 unless said
--   SET VARIABLE slice_ns = 500000000;        length of a time slice, nanoseconds; 100 ms unless said
--
-- Makes
--   accesses, mappings, tasks, windows   the tables as recorded; columns, codes and units are described in
--                                        tracer/src/session/schema.rs
--   images     process images: a process from its start or exec to its end or next exec
--   placed     accesses with their place: `object` is the memory, `position` the byte in it. Equal places are equal
--              bytes: shared mappings by device, inode and file offset, private memory by image and address, kernel
--              memory by address
--   on_lines   placed, cut into lines: `line` is the key that reports print, `start` the first byte in it, `bytes`
--              how many
--              `executions` is how many executions a row stands for: 1, but for emulated runs
--   steps      accesses of watch windows in their order (window_seq, seq), with what the coherence protocol makes of
--              each; those `somewhere` touch some of their `bytes`, which of them is not known; plain columns, so that `COPY steps TO 'steps.parquet'` gives them to any engine
--
-- Exact, but for two things that a report does: it forgets the mappings of a process whose first thread ended before
-- anything else was seen of it, and it places by its physical address, where that was recorded, what no mapping covers.
-- (`attach`, which cannot sort, keeps 57,000 lines.) Costs of emulated accesses are messages, which follow from the order
-- and are in no row; requests and pairs of emulated runs are not in `steps`: `cohtrace log` and `cohtrace pairs` tell.

SET VARIABLE line_bytes = coalesce(getvariable('line_bytes'), 64);
SET VARIABLE slice_ns = coalesce(getvariable('slice_ns'), 100000000);

-- A table without rows has no part: then it is empty, of the columns that are used here.
SET VARIABLE mappings = (
    SELECT if(count(*) > 0, 'FROM ''mappings/*.parquet''', 'SELECT 0::UBIGINT AS seq, 0::UBIGINT AS batch,
        0::UBIGINT AS time_ns, 0::UINTEGER AS pid, 0::UBIGINT AS start, 0::UBIGINT AS len, 0::UBIGINT AS file_offset,
        0::UBIGINT AS dev, 0::UBIGINT AS inode, false AS shared, '''' AS name WHERE false')
    FROM glob('mappings/*.parquet'));
SET VARIABLE tasks = (
    SELECT if(count(*) > 0, 'FROM ''tasks/*.parquet''', 'SELECT 0::UBIGINT AS seq, 0::UBIGINT AS batch,
        0::UBIGINT AS time_ns, 0::UTINYINT AS kind, 0::UINTEGER AS pid, 0::UINTEGER AS tid, 0::UINTEGER AS parent_pid
        WHERE false')
    FROM glob('tasks/*.parquet'));
SET VARIABLE windows = (
    SELECT if(count(*) > 0, 'FROM ''windows/*.parquet''', 'SELECT 0::UBIGINT AS seq, 0::UBIGINT AS open_ns,
        0::UBIGINT AS end_ns, false AS everyone, 0::UBIGINT AS addr0, 0::UINTEGER AS pid0, 0::UTINYINT AS len0,
        0::UBIGINT AS addr1, 0::UINTEGER AS pid1, 0::UTINYINT AS len1, 0::UBIGINT AS addr2, 0::UINTEGER AS pid2,
        0::UTINYINT AS len2, 0::UBIGINT AS addr3, 0::UINTEGER AS pid3, 0::UTINYINT AS len3 WHERE false')
    FROM glob('windows/*.parquet'));
-- A row of an emulated run stands for several executions, and one of a watch window may lie somewhere within some bytes;
-- older sessions have no such columns. Every other row is one, of the bytes that it says.
CREATE OR REPLACE TEMP VIEW accesses AS
SELECT *, (1 + coalesce(repeats, 0))::BIGINT AS executions, greatest(size, coalesce(within, 0), 1) AS reach FROM (
    FROM 'accesses/*.parquet' UNION ALL BY NAME
    SELECT NULL::UINTEGER AS repeats, NULL::UTINYINT AS within WHERE false);
CREATE OR REPLACE TEMP VIEW mappings AS FROM query(getvariable('mappings'));
CREATE OR REPLACE TEMP VIEW tasks AS FROM query(getvariable('tasks'));
CREATE OR REPLACE TEMP VIEW windows AS FROM query(getvariable('windows'));

-- One order of everything that decides about places. Context of a batch applies by time within it, before accesses
-- of the same time; batches are in order.
CREATE OR REPLACE TEMP TABLE stream AS
WITH context AS (
    SELECT seq, batch, time_ns, 'mapping' AS what, pid, NULL::UINTEGER AS parent_pid FROM mappings
    UNION ALL
    SELECT seq, batch, time_ns,
        CASE WHEN kind = 1 THEN 'exec' WHEN kind = 2 AND pid <> parent_pid THEN 'fork' ELSE 'other' END,
        pid, parent_pid
    FROM tasks
), merged AS (
    SELECT seq, batch, time_ns, what, pid, parent_pid, 0 AS rank FROM context
    UNION ALL
    SELECT seq, batch, time_ns, 'access', pid, NULL, 1 FROM accesses
)
SELECT row_number() OVER (ORDER BY batch, time_ns, rank, seq) AS pos, seq, what, pid, parent_pid
FROM merged;

-- An image starts by exec, by fork, or where its process is first heard of. They are numbered as in line keys.
CREATE OR REPLACE TEMP TABLE images AS
WITH told AS (
    SELECT pid, pos, parent_pid FROM stream WHERE what IN ('exec', 'fork')
), heard AS (
    SELECT pid, min(pos) AS pos FROM (
        SELECT pid, pos FROM stream WHERE what IN ('mapping', 'access')
        UNION ALL
        SELECT parent_pid, pos FROM stream WHERE what = 'fork')
    GROUP BY pid
), started AS (
    SELECT pid, pos, 1 AS step, parent_pid FROM told
    UNION ALL
    SELECT pid, pos, 0, NULL FROM heard
    WHERE NOT EXISTS (FROM told WHERE told.pid = heard.pid AND told.pos < heard.pos)
), numbered AS (
    SELECT row_number() OVER (ORDER BY pos, step) - 1 AS space, pid, pos, parent_pid FROM started
)
SELECT child.space, child.pid, child.pos, parent.space AS parent
FROM numbered child
ASOF LEFT JOIN numbered parent ON child.parent_pid = parent.pid AND child.pos >= parent.pos;

-- From 0xff00000000000000 on (x86-64 and aarch64).
CREATE OR REPLACE TEMP MACRO is_kernel(addr) AS addr >= 18374686479671623680;

CREATE OR REPLACE TEMP TABLE placed AS
WITH RECURSIVE lineage AS (
    -- A forked image has its parent's mappings up to the fork.
    SELECT space, space AS ancestor, 9223372036854775807 AS until FROM images
    UNION ALL
    SELECT lineage.space, images.parent, least(until, images.pos)
    FROM lineage JOIN images ON images.space = lineage.ancestor
    WHERE images.parent IS NOT NULL
), here AS (
    SELECT accesses.*, stream.pos, images.space
    FROM accesses
    JOIN stream ON stream.what = 'access' AND stream.seq = accesses.seq
    ASOF JOIN images ON stream.pid = images.pid AND stream.pos >= images.pos
), mapped AS (
    SELECT stream.pos, images.space, start, start::HUGEINT + len AS "end", file_offset, dev, inode, shared, name
    FROM mappings
    JOIN stream ON stream.what = 'mapping' AND stream.seq = mappings.seq
    ASOF JOIN images ON stream.pid = images.pid AND stream.pos >= images.pos
    WHERE len > 0
), pages AS (
    SELECT DISTINCT space, addr // 4096 AS page FROM here WHERE NOT is_kernel(addr)
), near AS (
    -- The mappings that an access of the page may be in: few, so that accesses are compared with few.
    SELECT pages.space, pages.page, mapped.pos, mapped.start, mapped."end"
    FROM pages
    JOIN lineage USING (space)
    JOIN mapped ON mapped.space = lineage.ancestor AND mapped.pos <= lineage.until
    WHERE mapped.start < (pages.page + 1) * 4096 AND mapped."end" > pages.page * 4096
), found AS (
    -- The newest mapping there is the one.
    SELECT here.seq, max(near.pos) AS newest
    FROM here
    JOIN near ON near.space = here.space AND near.page = here.addr // 4096
    WHERE near.pos <= here.pos AND here.addr >= near.start AND here.addr < near."end"
    GROUP BY here.seq
)
SELECT here.* EXCLUDE (pos),
    CASE
        WHEN is_kernel(addr) THEN 'kernel'
        WHEN shared AND inode <> 0 THEN 'shared:' || (dev >> 32) || ':' || (dev & 4294967295) || ':' || inode
        ELSE 'private:' || here.space
    END AS object,
    CASE
        WHEN NOT is_kernel(addr) AND shared AND inode <> 0
            THEN ((addr::HUGEINT - start + file_offset) % 18446744073709551616)::UBIGINT
        ELSE addr
    END AS position,
    name AS mapping
FROM here
LEFT JOIN found USING (seq)
LEFT JOIN mapped ON mapped.pos = found.newest;

-- An access that crosses lines is on each; its cost is the first's. A size of 0 is not known: one byte is certain.
CREATE OR REPLACE TEMP VIEW on_lines AS
WITH cut AS (
    SELECT *, position % getvariable('line_bytes') AS into_line, greatest(size, 1) AS length,
        unnest(range(((position % getvariable('line_bytes') + greatest(size, 1) - 1)
            // getvariable('line_bytes') + 1)::BIGINT)) AS piece
    FROM placed
), pieces AS (
    SELECT * EXCLUDE (cost_ns), if(piece = 0, cost_ns, 0) AS cost_ns,
        if(piece = 0, into_line, 0)::INTEGER AS start,
        position - into_line + piece::HUGEINT * getvariable('line_bytes') AS line_at,
        (least((piece + 1) * getvariable('line_bytes'), into_line + length)
            - greatest(piece * getvariable('line_bytes'), into_line))::INTEGER AS bytes
    FROM cut
)
SELECT * EXCLUDE (into_line, length, piece, line_at),
    object || ':' || format('{:#x}', line_at::UBIGINT) AS line,
    time_ns // getvariable('slice_ns') AS slice
FROM pieces
WHERE line_at <= 18446744073709551615;

-- The protocol is the directory MESI model of SWIFT (PPoPP 2005, section 2; tracer/src/coherence/mod.rs says what is
-- ours), each window from a line that is in no cache, CPUs as processors. Accesses are loads and stores, and no copy
-- is ever evicted; so what the home knows before an access follows from the newest store before it and who accessed
-- the line since, that store included:
--   holders   = CPUs that accessed the line since then
--   holds     = this CPU is one of them: its own newest access is not older than that store
--   owned     = there was a store, and its CPU is the only holder
--   a load asks for a copy (READ_SHAR) unless it holds one; a store asks for ownership (READ_PRIV) unless its CPU owns
--   the line. An owner elsewhere is recalled and sends data (2 messages); of a shared copy each other holder is
--   recalled and acknowledges (2 messages each). The request itself and the answer are 2.
CREATE OR REPLACE TEMP VIEW steps AS
WITH inside AS (
    SELECT placed.*, windows.seq AS window_seq, windows.everyone, addr0, pid0, len0, addr1, pid1, len1, addr2, pid2, len2,
        addr3, pid3, len3
    FROM placed JOIN windows ON placed.time_ns BETWEEN windows.open_ns AND windows.end_ns
    WHERE placed.basis = 3
    QUALIFY row_number() OVER (PARTITION BY placed.seq ORDER BY windows.seq) = 1
), words AS (
    SELECT *, unnest([
        {'nth': 0, 'addr': addr0, 'pid': pid0, 'len': len0}, {'nth': 1, 'addr': addr1, 'pid': pid1, 'len': len1},
        {'nth': 2, 'addr': addr2, 'pid': pid2, 'len': len2}, {'nth': 3, 'addr': addr3, 'pid': pid3, 'len': len3}
    ]) AS word
    FROM inside
), watched AS (
    -- The line of a window is that of the first word that is touched.
    SELECT window_seq, object, word_at - word_at % getvariable('line_bytes') AS line_at
    FROM (
        SELECT *, position::HUGEINT + word.addr - addr AS word_at
        FROM words
        WHERE (everyone OR word.pid = pid)
            AND addr < word.addr::HUGEINT + word.len AND word.addr < addr::HUGEINT + reach)
    QUALIFY row_number() OVER (PARTITION BY window_seq ORDER BY seq, word.nth) = 1
), ordered AS (
    SELECT window_seq, seq, time_ns, cpu, pid, tid, ip, kernel, space, op, op IN (1, 2) AS stores, object, position,
        line_at, object || ':' || format('{:#x}', line_at::UBIGINT) AS line, mapping,
        within IS NOT NULL AS somewhere,
        greatest(position, line_at) - line_at AS start,
        least(position::HUGEINT + reach, line_at + getvariable('line_bytes')) - greatest(position, line_at) AS bytes,
        sum(stores::INTEGER) OVER (PARTITION BY window_seq ORDER BY seq) AS opened
    FROM inside JOIN watched USING (window_seq, object)
    WHERE op IN (0, 1, 2)
        AND position < line_at + getvariable('line_bytes') AND position::HUGEINT + reach > line_at
), held AS (
    SELECT *,
        opened - stores::INTEGER AS stores_before,
        coalesce(lag(opened) OVER (PARTITION BY window_seq, cpu ORDER BY seq) = opened - stores::INTEGER, false) AS holds,
        row_number() OVER (PARTITION BY window_seq, opened, cpu ORDER BY seq) = 1 AS fresh
    FROM ordered
), counted AS (
    SELECT *, sum(fresh::INTEGER) OVER (PARTITION BY window_seq, opened ORDER BY seq) AS holders_after FROM held
), known AS (
    SELECT *, coalesce(lag(holders_after) OVER (PARTITION BY window_seq ORDER BY seq), 0) AS holders FROM counted
), asked AS (
    SELECT *,
        holders = 1 AND stores_before > 0 AS owned,
        CASE
            WHEN NOT stores AND NOT holds THEN 'READ_SHAR'
            WHEN stores AND NOT (holds AND holders = 1 AND stores_before > 0) THEN 'READ_PRIV'
        END AS request
    FROM known
)
SELECT window_seq, seq, time_ns, cpu, pid, tid, format('{:#x}', ip) AS ip, kernel, space, op, stores, line, mapping,
    format('{:#x}', position) AS target, format('{:#x}', line_at::UBIGINT) AS line_start, start::INTEGER AS start,
    bytes::INTEGER AS bytes, somewhere, request,
    stores_before = 0 AS cold,
    CASE WHEN request IS NOT NULL AND owned AND NOT holds THEN 1 ELSE 0 END AS recall_priv,
    (CASE WHEN request = 'READ_PRIV' AND NOT owned THEN holders - holds::INTEGER ELSE 0 END)::INTEGER AS recall_shar
FROM asked;

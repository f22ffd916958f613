-- Which thread touches which bytes of which line, by time slice. After session.sql; lines of several threads only.
--
--   line        key of the line            slice      number of the time slice: time_ns // slice_ns
--   pid, tid    who                        accesses   accesses in samples (executions, if emulated), stores: of those, stores
--   cost_ns     sampled time spent waiting, ns
--   byte_map    each byte of the line: r read, w stored, m both, . untouched by this thread in this slice
--
-- Summed over slices, accesses and stores of a line are those of false_sharing.sql, and of the rows of
-- `cohtrace report --json` (findings[].accesses[].count) with that thread.

WITH touches AS (
    SELECT line, slice, pid, tid, start, bytes, op IN (1, 2) AS stores, sum(executions)::BIGINT AS accesses,
        sum(cost_ns) AS cost_ns
    FROM on_lines WHERE basis <> 3 AND op NOT IN (3, 5)
    GROUP BY ALL
), shared AS (
    SELECT line FROM touches GROUP BY line HAVING count(DISTINCT tid) > 1 AND bool_or(stores)
), by_thread AS (
    SELECT line, slice, pid, tid, sum(accesses)::BIGINT AS accesses,
        coalesce(sum(accesses) FILTER (stores), 0)::BIGINT AS stores, sum(cost_ns)::BIGINT AS cost_ns
    FROM touches SEMI JOIN shared USING (line)
    GROUP BY ALL
), each_byte AS (
    SELECT line, slice, tid, byte, bool_or(stores) AS stored, bool_or(NOT stores) AS loaded
    FROM (
        SELECT line, slice, tid, stores, unnest(range(start, start + bytes)) AS byte
        FROM touches SEMI JOIN shared USING (line))
    GROUP BY ALL
)
SELECT line, slice, pid, tid, any_value(accesses) AS accesses, any_value(stores) AS stores,
    any_value(cost_ns) AS cost_ns,
    string_agg(
        CASE WHEN stored AND loaded THEN 'm' WHEN stored THEN 'w' WHEN loaded THEN 'r' ELSE '.' END, '' ORDER BY byte)
        AS byte_map
FROM by_thread
CROSS JOIN (SELECT unnest(range(getvariable('line_bytes'))) AS byte) AS whole
LEFT JOIN each_byte USING (line, slice, tid, byte)
GROUP BY line, slice, pid, tid
ORDER BY line, slice, tid;

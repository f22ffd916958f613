-- Cache lines that several threads touch, and whether they use the same bytes. After session.sql.
--
-- A stored byte that no other thread touches, on a line that other threads touch, is what false sharing is made of; a
-- stored byte that others touch is true sharing. `cohtrace report --json` weighs the same numbers by how closely in
-- time the threads took turns; its findings and insignificant lines are these lines.
--
--   line            key of the line                                       report: findings[].line.key
--   mapping         what is mapped there
--   threads         threads that touch it, in samples or windows          report: different accesses[].threads[]
--   accesses        accesses in samples, one per instruction and sample; of emulated runs, executions
--                                                                         report: sum of accesses[].count
--   stores          of those, stores and read-modify-writes               report: the same of op store and rmw
--   samples         samples with an access to it; of emulated runs, executions
--   stalled         accesses that a sample found waiting, or a PMU with a latency   report: findings[].cost.samples
--   cost_ns         sampled time that was spent waiting for it, ns; cycles where meta.json's cost_unit says so;
--                   as sampled: a report moves the cost of loads of lines that windows saw no store on to the access
--                   that they name `instead`
--   trapped         accesses in watch windows                             report: sum of accesses[].trapped
--   common_bytes    bytes that one thread stores and another touches      report: the same of accesses[] without `within`
--   private_bytes   bytes that one thread stores and no other touches
--   slices          time slices in which several threads touch it and one of them stores
--   false_slices    of those, slices without a common stored byte
--   byte_map        each byte of the line: C common, P private, r only read, . untouched

WITH touches AS (
    SELECT line, slice, tid, start, bytes, op IN (1, 2) AS stores, sum(executions)::BIGINT AS accesses
    FROM on_lines WHERE basis <> 3 AND op NOT IN (3, 5)
    GROUP BY ALL
), sampled AS (
    SELECT line, any_value(mapping) AS mapping, sum(executions)::BIGINT AS accesses,
        coalesce(sum(executions) FILTER (op IN (1, 2)), 0)::BIGINT AS stores,
        (count(DISTINCT (tid, cpu, time_ns)) FILTER (basis <> 5)
            + coalesce(sum(executions) FILTER (basis = 5), 0))::BIGINT AS samples,
        count(*) FILTER (basis = 0 OR (basis = 4 AND latency > 0)) AS stalled,
        sum(cost_ns)::BIGINT AS cost_ns
    FROM on_lines WHERE basis <> 3 AND op NOT IN (3, 5)
    GROUP BY line
    HAVING count(DISTINCT tid) > 1 AND bool_or(op IN (1, 2))
), trapped AS (
    SELECT line, tid, start, bytes, stores, somewhere, count(*) AS accesses FROM steps GROUP BY ALL
), ranges AS (
    SELECT line, tid, start, bytes, stores FROM touches SEMI JOIN sampled USING (line)
    UNION
    SELECT line, tid, start, bytes, stores FROM trapped SEMI JOIN sampled USING (line) WHERE NOT somewhere
), each_byte AS (
    SELECT line, byte, bool_or(stores) AS stored, count(DISTINCT tid) AS threads
    FROM (SELECT line, tid, stores, unnest(range(start, start + bytes)) AS byte FROM ranges)
    GROUP BY line, byte
), by_byte AS (
    SELECT line,
        count(*) FILTER (stored AND threads > 1) AS common_bytes,
        count(*) FILTER (stored AND threads = 1) AS private_bytes,
        string_agg(letter, '' ORDER BY byte) AS byte_map
    FROM (
        SELECT DISTINCT ranges.line, whole.byte, stored, threads,
            CASE WHEN stored AND threads > 1 THEN 'C' WHEN stored THEN 'P' WHEN threads > 0 THEN 'r' ELSE '.' END
                AS letter
        FROM ranges
        CROSS JOIN (SELECT unnest(range(getvariable('line_bytes'))) AS byte) AS whole
        LEFT JOIN each_byte ON each_byte.line = ranges.line AND each_byte.byte = whole.byte)
    GROUP BY line
), by_slice AS (
    SELECT line, count(*) AS slices, count(*) FILTER (NOT common) AS false_slices
    FROM (
        SELECT line, slice, bool_or(byte_stored AND byte_threads > 1) AS common
        FROM (
            SELECT line, slice, byte, bool_or(stores) AS byte_stored, count(DISTINCT tid) AS byte_threads
            FROM (SELECT line, slice, tid, stores, unnest(range(start, start + bytes)) AS byte FROM touches)
            GROUP BY line, slice, byte)
        JOIN (
            SELECT line, slice FROM touches GROUP BY line, slice HAVING count(DISTINCT tid) > 1 AND bool_or(stores))
            USING (line, slice)
        GROUP BY line, slice)
    GROUP BY line
)
SELECT line, mapping,
    (SELECT count(DISTINCT tid) FROM (SELECT line, tid FROM ranges UNION SELECT line, tid FROM trapped) AS seen
        WHERE seen.line = sampled.line) AS threads,
    sampled.accesses, sampled.stores, samples, stalled, cost_ns,
    coalesce((SELECT sum(accesses) FROM trapped WHERE trapped.line = sampled.line), 0)::BIGINT AS trapped,
    common_bytes, private_bytes, coalesce(slices, 0) AS slices, coalesce(false_slices, 0) AS false_slices, byte_map
FROM sampled JOIN by_byte USING (line) LEFT JOIN by_slice USING (line)
ORDER BY cost_ns DESC, accesses DESC, line;

-- How often lines are accessed, by time slice. After session.sql.
--
-- Samples tell how the accesses are spread; watch windows tell how many there are, while they last.
--
--   line, mapping         the line and what is mapped there
--   slice                 number of the time slice: time_ns // slice_ns; a window is in the slice in which it opens
--   accesses, stores      in samples, one per instruction and sample; of emulated runs, executions,
--                         by the emulator's time                       over the run: false_sharing.sql
--   sampled_per_s         sampled accesses per second of the slice
--   sampled_stores_per_s  sampled stores per second of the slice
--   windows               watch windows on the line that saw an access
--   trapped, trapped_stores   accesses in those windows, all of them     report: findings[].accesses[].trapped
--   window_ns             time that those windows were open, ns
--   trapped_per_s         accesses per second of window, stores likewise; traps slow the threads down, so that there
--                         are at least as many without
--   trapped_stores_per_s

WITH sampled AS (
    SELECT line, slice, any_value(mapping) AS mapping, sum(executions)::BIGINT AS accesses,
        coalesce(sum(executions) FILTER (op IN (1, 2)), 0)::BIGINT AS stores
    FROM on_lines WHERE basis <> 3 AND op NOT IN (3, 5)
    GROUP BY line, slice
), by_window AS (
    SELECT line, window_seq, any_value(mapping) AS mapping, count(*) AS trapped, count(*) FILTER (stores) AS trapped_stores
    FROM steps
    GROUP BY line, window_seq
), watched AS (
    SELECT line, open_ns // getvariable('slice_ns') AS slice, any_value(mapping) AS mapping, count(*) AS windows,
        sum(trapped)::BIGINT AS trapped, sum(trapped_stores)::BIGINT AS trapped_stores,
        sum(end_ns - open_ns)::BIGINT AS window_ns
    FROM by_window JOIN windows ON windows.seq = by_window.window_seq
    GROUP BY ALL
)
SELECT line, coalesce(sampled.mapping, watched.mapping) AS mapping, slice,
    coalesce(accesses, 0) AS accesses, coalesce(stores, 0) AS stores,
    coalesce(accesses, 0) * 1e9 / getvariable('slice_ns') AS sampled_per_s,
    coalesce(stores, 0) * 1e9 / getvariable('slice_ns') AS sampled_stores_per_s,
    coalesce(windows, 0) AS windows, coalesce(trapped, 0) AS trapped, coalesce(trapped_stores, 0) AS trapped_stores,
    window_ns, trapped * 1e9 / nullif(window_ns, 0) AS trapped_per_s,
    trapped_stores * 1e9 / nullif(window_ns, 0) AS trapped_stores_per_s
FROM sampled FULL JOIN watched USING (line, slice)
ORDER BY line, slice;

-- Loads that a store follows: SWIFT (PPoPP 2005), section 4.1. After session.sql; standard SQL over `steps`.
--
-- The paper's filter: in the request log sorted by line, adjacent rows of one processor, READ_SHAR and then READ_PRIV.
-- Here a row is compared with the one before it in its line and window. Of requests before the first store of a window
-- nobody knows whether the cache really made them; loads among them are left out.
--
-- The rows of `cohtrace pairs --json` (which lists the first 100 pairs with a count of at least 3):
--   line            key of the line                                          pairs[].line.key
--   space           image of the process, by its number in line keys
--   load_ip         instruction that loads, address in the process           pairs[].load.code.ip, there in the module
--   store_ip        instruction that stores                                  pairs[].store.code.ip
--   global_count    adjacent requests by one CPU, the paper's filter         pairs[].global_count
--   count           times the store was the thread's next access after the load; of an instruction that does both,
--                   its executions                                           pairs[].count

WITH log AS (
    SELECT *,
        lag(request) OVER requests AS request_before, lag(cpu) OVER requests AS cpu_before,
        lag(cold) OVER requests AS cold_before, lag(ip) OVER requests AS ip_before,
        lag(space) OVER requests AS space_before, lag(kernel) OVER requests AS kernel_before
    FROM steps
    WHERE request IS NOT NULL
    WINDOW requests AS (PARTITION BY line, window_seq ORDER BY seq)
), adjacent AS (
    SELECT line, space_before AS load_space, ip_before AS load_ip, kernel_before AS load_kernel, space, ip, kernel
    FROM log
    WHERE request_before = 'READ_SHAR' AND request = 'READ_PRIV' AND cpu_before = cpu AND NOT cold_before
), threads AS (
    SELECT *, lag(op, 1, 9) OVER thread AS op_before, lag(ip) OVER thread AS ip_before,
        lag(space) OVER thread AS space_before, lag(kernel) OVER thread AS kernel_before
    FROM steps
    WINDOW thread AS (PARTITION BY line, window_seq, tid ORDER BY seq)
), followed AS (
    SELECT line, space_before AS load_space, ip_before AS load_ip, kernel_before AS load_kernel, space, ip, kernel
    FROM threads WHERE op_before = 0 AND stores
    UNION ALL
    SELECT line, space AS load_space, ip AS load_ip, kernel AS load_kernel, space, ip, kernel FROM threads WHERE op = 2
)
SELECT line, load_space AS space, load_ip, ip AS store_ip,
    sum(by_request) AS global_count, sum(by_thread) AS count
FROM (
    SELECT *, 1 AS by_request, 0 AS by_thread FROM adjacent
    UNION ALL
    SELECT *, 0, 1 FROM followed) AS pairs
GROUP BY line, load_space, load_ip, load_kernel, space, ip, kernel
ORDER BY count DESC, global_count DESC, line, load_ip, store_ip;

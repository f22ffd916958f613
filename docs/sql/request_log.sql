-- The request log of the watch windows (SWIFT, PPoPP 2005, section 3.2). After session.sql; standard SQL over `steps`.
--
-- The rows of `cohtrace log`: number in order of arrival, processor, thread, instruction, first byte touched, first
-- byte of the line (both in the place's own numbering: address, or file offset of shared memory), request. Each window
-- starts from a line that is in no cache.

SELECT row_number() OVER (ORDER BY window_seq, seq) - 1 AS number, cpu, tid, ip, target, line_start AS line, request
FROM steps
WHERE request IS NOT NULL
ORDER BY number;

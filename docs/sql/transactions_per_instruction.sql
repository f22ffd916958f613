-- What each instruction asks of the caches, and the messages that it takes. After session.sql; standard SQL over `steps`.
--
-- Of the accesses in watch windows, by the protocol of `steps`: the same requests as `cohtrace log`, by instruction.
--
--   line, space, ip, kernel, op   the instruction on the line; op 0 load, 1 store, 2 read-modify-write
--   executions      accesses in the windows' orders
--   read_shar       of those, requests for a copy                      rows of `cohtrace log` with READ_SHAR
--   read_priv       of those, requests for ownership                   rows of `cohtrace log` with READ_PRIV
--   cold            of both, requests before the first store of their window: where the line was is not known
--   owner_recalls   RECALL_PRIV messages to an owner elsewhere, each answered by a RESP_DATA
--   sharer_recalls  RECALL_SHAR messages to other sharers, each answered by an ACK
--   transactions    all messages: request, answer, recalls and their responses
--   transactions_per_execution

SELECT line, space, ip, kernel, op,
    count(*) AS executions,
    count(CASE WHEN request = 'READ_SHAR' THEN 1 END) AS read_shar,
    count(CASE WHEN request = 'READ_PRIV' THEN 1 END) AS read_priv,
    count(CASE WHEN cold THEN request END) AS cold,
    sum(recall_priv) AS owner_recalls,
    sum(recall_shar) AS sharer_recalls,
    2 * (count(request) + sum(recall_priv) + sum(recall_shar)) AS transactions,
    2.0 * (count(request) + sum(recall_priv) + sum(recall_shar)) / count(*) AS transactions_per_execution
FROM steps
GROUP BY line, space, ip, kernel, op
ORDER BY transactions DESC, executions DESC, line, ip;

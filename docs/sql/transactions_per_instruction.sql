-- What each instruction asks of the caches, and the messages that it takes. After session.sql.
--
-- Of the accesses in watch windows, by the protocol of `steps`: the same requests as `cohtrace log`, by instruction.
--
--   line, space, ip, kernel, op   the instruction on the line; op 0 load, 1 store, 2 read-modify-write
--   executions      accesses in the windows' orders
--   read_shar       of those, requests for a copy                      rows of `cohtrace log` with READ_SHAR
--   read_priv       of those, requests for ownership                   rows of `cohtrace log` with READ_PRIV
--   cold            of both, requests before the first store of their window: where the line was is not known
--   recall_priv     messages to an owner elsewhere, each answered by a RESP_DATA
--   recall_shar     messages to other sharers, each answered by an ACK
--   transactions    all messages: request, answer, recalls and their responses
--   transactions_per_execution

SELECT line, space, format('{:#x}', ip) AS ip, kernel, op,
    count(*) AS executions,
    count(*) FILTER (request = 'READ_SHAR') AS read_shar,
    count(*) FILTER (request = 'READ_PRIV') AS read_priv,
    count(*) FILTER (request IS NOT NULL AND cold) AS cold,
    sum(recall_priv)::BIGINT AS recall_priv,
    sum(recall_shar)::BIGINT AS recall_shar,
    (2 * (count(request) + sum(recall_priv) + sum(recall_shar)))::BIGINT AS transactions,
    2 * (count(request) + sum(recall_priv) + sum(recall_shar)) / count(*) AS transactions_per_execution
FROM steps
GROUP BY line, space, steps.ip, kernel, op
ORDER BY transactions DESC, executions DESC, line, steps.ip;

-- How the last run of each session ended, so that lists show it without reading events. Nothing while a run goes on.
ALTER TABLE sessions ADD ended TEXT;

UPDATE sessions SET ended = (
  SELECT CASE WHEN json_valid(e.body) THEN json_extract(e.body, '$.result') END
  FROM events e INDEXED BY rare
  WHERE e.key BETWEEN sessions.n << 32 AND (sessions.n << 32) + 4294967295
    AND substr(type,1,4)NOT IN('text','reas','step','tool','file')
    AND e.type IN ('run.start', 'run.done') AND e.agent IS NULL
  ORDER BY e.key DESC LIMIT 1
);

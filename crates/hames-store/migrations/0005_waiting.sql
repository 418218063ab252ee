-- What waits in each session, so that lists show it without reading events. Few words: the schema has to lie on the first
-- page, because a damaged page costs what lies on it.
-- pending: ids of the messages that wait, a JSON array. asks: nothing; 1: the run that goes on has proposed; 2: a run has
-- ended with proposals that nobody decided about.
ALTER TABLE sessions ADD pending TEXT;
ALTER TABLE sessions ADD asks INT;

-- Everything but the bulk of a log, so that what a session is can be read without the steps it took.
CREATE INDEX rare ON events(key)WHERE substr(type,1,4)NOT IN('text','reas','step','tool','file');

-- The last event of each session that says by itself what waits. Bodies that cannot be read say nothing.
CREATE TEMP TABLE said AS
SELECT session, max(key) AS key FROM events
WHERE type IN ('session.cut', 'session.branched', 'session.imported') GROUP BY session;

CREATE TEMP TABLE waits (session, id, at);
INSERT INTO waits
SELECT said.session, json_extract(p.value, '$.id'), p.key
FROM said JOIN events e ON e.key = said.key,
  json_each(CASE WHEN json_valid(e.body) THEN coalesce(json_extract(e.body, '$.outside.pending'), '[]') ELSE '[]' END) p;
INSERT INTO waits
SELECT e.session, CASE WHEN json_valid(e.body) THEN json_extract(e.body, '$.id') END, e.key
FROM events e LEFT JOIN said ON said.session = e.session
WHERE e.type = 'pending.added' AND e.key > coalesce(said.key, 0);
DELETE FROM waits WHERE id IS NULL OR (session, id) IN (
  SELECT e.session,
    CASE WHEN json_valid(e.body)
         THEN json_extract(e.body, iif(e.type = 'pending.cancelled', '$.id', '$.pending_id')) END
  FROM events e LEFT JOIN said ON said.session = e.session
  WHERE e.type IN ('pending.cancelled', 'message.user') AND e.key > coalesce(said.key, 0)
);
UPDATE sessions SET pending = (SELECT json_group_array(id) FROM waits WHERE session = n)
WHERE n IN (SELECT session FROM waits);

DROP TABLE said;
DROP TABLE waits;

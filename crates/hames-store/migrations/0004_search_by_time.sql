-- What was said and its index anew, in the order of time: the newest hits come first, and the rest is not looked at.
-- Only which trigrams a text has is kept, not where: what is found is compared anyway, and the index is a third of the size.
DROP TRIGGER said_added;
DROP TRIGGER said_removed;
DROP TABLE said_index;
DROP TABLE said;

CREATE TABLE said (
  id   INTEGER PRIMARY KEY,                      -- time << 21 | ordinal among those of one millisecond
  key  INTEGER NOT NULL UNIQUE,                  -- the event's
  kind TEXT    NOT NULL,
  text TEXT    NOT NULL
);
CREATE VIRTUAL TABLE said_index USING fts5(
  text, content = 'said', content_rowid = 'id', tokenize = 'trigram', detail = 'none', columnsize = 0
);

CREATE TRIGGER said_added AFTER INSERT ON said BEGIN
  INSERT INTO said_index (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER said_removed AFTER DELETE ON said BEGIN
  INSERT INTO said_index (said_index, rowid, text) VALUES ('delete', old.id, old.text);
END;

UPDATE sessions SET indexed_seq = 0;

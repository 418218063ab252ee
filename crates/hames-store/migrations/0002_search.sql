-- What was said, and its index. Filled after the fact, from the events past indexed_seq: no append waits for it.
ALTER TABLE sessions ADD COLUMN indexed_seq INTEGER NOT NULL DEFAULT 0;

CREATE TABLE said (
  key  INTEGER PRIMARY KEY,                      -- the event's
  at   INTEGER NOT NULL,
  kind TEXT    NOT NULL,
  text TEXT    NOT NULL
);
CREATE VIRTUAL TABLE said_index USING fts5(text, content = 'said', content_rowid = 'key', tokenize = 'trigram');

CREATE TRIGGER said_added AFTER INSERT ON said BEGIN
  INSERT INTO said_index (rowid, text) VALUES (new.key, new.text);
END;
CREATE TRIGGER said_removed AFTER DELETE ON said BEGIN
  INSERT INTO said_index (said_index, rowid, text) VALUES ('delete', old.key, old.text);
END;

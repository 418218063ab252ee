-- Sessions and their events. What is listed about a session is kept in its row, so that no list ever reads events.
CREATE TABLE sessions (
  n          INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again: events are keyed by it
  id         TEXT    NOT NULL UNIQUE,
  name       TEXT    NOT NULL,
  name_key   TEXT    NOT NULL,                   -- the name without case, in one normal form
  folder     TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_seq   INTEGER NOT NULL DEFAULT 0,
  turns      INTEGER NOT NULL DEFAULT 0,
  model      TEXT,
  mode       TEXT,
  first_line TEXT    NOT NULL DEFAULT '',
  UNIQUE (folder, name_key)
);

-- key = session << 32 | seq: one tree, in reading order, written at one place per session.
CREATE TABLE events (
  key     INTEGER PRIMARY KEY,
  session INTEGER GENERATED ALWAYS AS (key >> 32) VIRTUAL,
  seq     INTEGER GENERATED ALWAYS AS (key & 4294967295) VIRTUAL,
  v       INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  run     TEXT,
  turn    INTEGER,
  step    INTEGER,
  agent   TEXT,                                  -- JSON array; NULL for the run itself
  type    TEXT    NOT NULL,                      -- before the body, so that a scan by type skips bodies
  body    TEXT    NOT NULL
);

-- Pieces of the open step, kept beside the log. key = session << 32 | ordinal.
CREATE TABLE open_pieces (
  key  INTEGER PRIMARY KEY,
  body TEXT NOT NULL
);

CREATE TABLE blobs (
  hash  TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL,
  body  BLOB                                     -- NULL: the content is the file blobs/ab/cdef…
);
CREATE TABLE blob_refs (
  session INTEGER NOT NULL,
  hash    TEXT    NOT NULL,
  PRIMARY KEY (session, hash)
) WITHOUT ROWID;
CREATE INDEX blob_refs_by_hash ON blob_refs (hash);
CREATE TABLE blob_names (
  session INTEGER NOT NULL,
  name    TEXT    NOT NULL,
  hash    TEXT    NOT NULL,
  dropped INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session, name)
) WITHOUT ROWID;

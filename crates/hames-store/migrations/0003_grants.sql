-- What a person allowed in a folder from then on, one grant a row, as JSON.
CREATE TABLE grants (
  folder TEXT    NOT NULL,
  grant  TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (folder, grant)
) WITHOUT ROWID;

-- An owner's bucket is in each key, so that an archive can be walked bucket by bucket.
CREATE TABLE owner (
    owner INTEGER PRIMARY KEY,
    bucket INTEGER NOT NULL,
    token INTEGER NOT NULL,
    nonce BLOB NOT NULL,
    upto INTEGER NOT NULL,
    buried INTEGER NOT NULL
);
CREATE INDEX owner_by_bucket ON owner (bucket, owner);

CREATE TABLE post (
    id INTEGER PRIMARY KEY,
    bucket INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    change INTEGER NOT NULL,
    stored BLOB NOT NULL,
    parts BLOB
);
CREATE INDEX post_by_owner ON post (bucket, owner, id);

-- Chunks of members, counted from the lowest; `low` is the score of the first one of a chunk.
CREATE TABLE member (
    post INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    low REAL NOT NULL,
    members BLOB NOT NULL,
    PRIMARY KEY (post, kind, chunk)
) WITHOUT ROWID;

CREATE TABLE listed (
    bucket INTEGER NOT NULL,
    list BLOB NOT NULL,
    ms INTEGER NOT NULL,
    post INTEGER NOT NULL,
    author INTEGER NOT NULL,
    PRIMARY KEY (bucket, list, ms, post)
) WITHOUT ROWID;

CREATE TABLE list_stamp (
    bucket INTEGER NOT NULL,
    list BLOB NOT NULL,
    stamp INTEGER NOT NULL,
    PRIMARY KEY (bucket, list)
) WITHOUT ROWID;

-- The bucket is the first column of every key, and no statement joins two buckets: a distributed PostgreSQL can spread
-- all tables by it. No foreign keys and no sequences, for the same reason.
CREATE TABLE owner (
    bucket int NOT NULL,
    owner bigint NOT NULL,
    token bigint NOT NULL,
    nonce bytea NOT NULL,
    upto bigint NOT NULL,
    buried boolean NOT NULL,
    PRIMARY KEY (bucket, owner)
);

CREATE TABLE post (
    bucket int NOT NULL,
    id bigint NOT NULL,
    owner bigint NOT NULL,
    change bigint NOT NULL,
    stored bytea NOT NULL,
    parts bytea,
    PRIMARY KEY (bucket, id)
);
CREATE INDEX post_by_owner ON post (bucket, owner, id);

-- Chunks of members, counted from the lowest; `low` is the score of the first one of a chunk.
CREATE TABLE member (
    bucket int NOT NULL,
    post bigint NOT NULL,
    kind smallint NOT NULL,
    chunk int NOT NULL,
    low float8 NOT NULL,
    members bytea NOT NULL,
    PRIMARY KEY (bucket, post, kind, chunk)
);

CREATE TABLE listed (
    bucket int NOT NULL,
    list bytea NOT NULL,
    ms bigint NOT NULL,
    post bigint NOT NULL,
    author bigint NOT NULL,
    PRIMARY KEY (bucket, list, ms, post)
);

CREATE TABLE list_stamp (
    bucket int NOT NULL,
    list bytea NOT NULL,
    stamp bigint NOT NULL,
    PRIMARY KEY (bucket, list)
);

-- What the index has of a post; no author: nothing that could be found. The row stays, so that who is late sees it.
CREATE TABLE search (
    id INTEGER PRIMARY KEY,
    bucket INTEGER NOT NULL,
    version INTEGER NOT NULL,
    author INTEGER
);
CREATE INDEX search_by_bucket ON search (bucket, id) WHERE author IS NOT NULL;

-- Words by post, without the texts. Each is a run of ASCII letters, digits and of what isn't ASCII; who may find a post
-- is a word too, which no text has.
CREATE VIRTUAL TABLE search_words USING fts5 (
    words,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = 'ascii'
);

-- What the index has of a post; no words: nothing that could be found. The row stays, so that who is late sees it.
CREATE TABLE search (
    bucket int NOT NULL,
    id bigint NOT NULL,
    version bigint NOT NULL,
    author bigint,
    is_public boolean NOT NULL,
    words tsvector,
    PRIMARY KEY (bucket, id)
);
-- Newest first over all buckets; where buckets are spread, each server has its own part of it.
CREATE INDEX search_by_id ON search (id);
-- What waits to be sorted in is gone through by each search: little may wait.
CREATE INDEX search_words ON search USING gin (words) WITH (gin_pending_list_limit = 256) WHERE words IS NOT NULL;

-- The log. A row is one entry; its hash covers every column and the hash of the entry before.
CREATE TABLE entry (
    seq INTEGER PRIMARY KEY,
    ts_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    actor TEXT NOT NULL,
    role TEXT NOT NULL,
    cause TEXT NOT NULL,
    noun TEXT NOT NULL,
    noun_id TEXT NOT NULL,
    facts BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;

-- The part of an entry that may be removed one day without breaking the chain: apart, so that the
-- entry itself is never touched. Either salt and body, or the hash that stays in their place.
CREATE TABLE entry_private (
    seq INTEGER PRIMARY KEY,
    salt BLOB,
    body BLOB,
    hash BLOB,
    CHECK ((hash IS NULL) = (salt IS NOT NULL AND body IS NOT NULL))
) STRICT;

-- Signed notes, by the size of the log that they speak of.
CREATE TABLE checkpoint (
    size INTEGER PRIMARY KEY,
    note TEXT NOT NULL
) STRICT;

-- The chain as it was at the newest checkpoint: where a start begins to read.
CREATE TABLE resume (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    chain BLOB NOT NULL
) STRICT;

-- Derived from the log: the state of most nouns.
CREATE TABLE item (
    noun TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    body BLOB,
    PRIMARY KEY (noun, id)
) STRICT, WITHOUT ROWID;

-- Derived from the log: numbers that many writers share.
CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Answers to requests that carried a key; dropped after some days.
CREATE TABLE answer (
    key TEXT PRIMARY KEY,
    request_hash BLOB NOT NULL,
    body BLOB NOT NULL,
    at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX answer_by_age ON answer (at_us);

-- These stop mistakes. What stops an attacker is the chain and a checkpoint kept elsewhere.
CREATE TRIGGER entry_is_never_updated BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry of the log is never changed'); END;

CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'an entry of the log is never deleted'); END;

CREATE TRIGGER entry_private_is_never_updated BEFORE UPDATE ON entry_private
BEGIN SELECT RAISE(ABORT, 'an entry of the log is never changed'); END;

CREATE TRIGGER entry_private_is_never_deleted BEFORE DELETE ON entry_private
BEGIN SELECT RAISE(ABORT, 'an entry of the log is never deleted'); END;

CREATE TRIGGER checkpoint_is_never_updated BEFORE UPDATE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'a checkpoint is never changed'); END;

CREATE TRIGGER checkpoint_is_never_deleted BEFORE DELETE ON checkpoint
BEGIN SELECT RAISE(ABORT, 'a checkpoint is never deleted'); END;

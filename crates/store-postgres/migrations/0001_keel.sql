-- The log. A row is one entry; its hash covers every column and the hash of the entry before.
CREATE TABLE entry (
    seq bigint PRIMARY KEY,
    ts_us bigint NOT NULL,
    kind text NOT NULL,
    version integer NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    cause text NOT NULL,
    noun text NOT NULL,
    noun_id text NOT NULL,
    facts bytea NOT NULL,
    hash bytea NOT NULL
);

-- The part of an entry that may be removed one day without breaking the chain: apart, so that the
-- entry itself is never touched. Either salt and body, or the hash that stays in their place.
CREATE TABLE entry_private (
    seq bigint PRIMARY KEY,
    salt bytea,
    body bytea,
    hash bytea,
    CHECK ((hash IS NULL) = (salt IS NOT NULL AND body IS NOT NULL))
);

-- The end of the log. Whoever appends holds this row until the commit, so the order of the numbers is
-- the order of the commits.
CREATE TABLE head (
    only_row integer PRIMARY KEY CHECK (only_row = 1),
    size bigint NOT NULL,
    chain bytea NOT NULL
) WITH (fillfactor = 10);

-- Signed notes, by the size of the log that they speak of.
CREATE TABLE checkpoint (
    size bigint PRIMARY KEY,
    note text NOT NULL
);

-- The chain as it was at the newest checkpoint.
CREATE TABLE resume (
    only_row integer PRIMARY KEY CHECK (only_row = 1),
    chain bytea NOT NULL
);

-- Derived from the log: the state of most nouns.
CREATE TABLE item (
    noun text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    body bytea,
    PRIMARY KEY (noun, id)
) WITH (fillfactor = 70);

-- Derived from the log: numbers that many writers share.
CREATE TABLE counter (
    name text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 10);

-- Answers to requests that carried a key; dropped after some days.
CREATE TABLE answer (
    key text COLLATE "C" PRIMARY KEY,
    request_hash bytea NOT NULL,
    body bytea NOT NULL,
    at_us bigint NOT NULL
);

CREATE INDEX answer_by_age ON answer (at_us);

-- These stop mistakes. What stops an attacker is the chain and a checkpoint kept elsewhere.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'what the log holds is never changed'; END$$;

CREATE TRIGGER entry_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON entry
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER entry_private_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON entry_private
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER checkpoint_is_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON checkpoint
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

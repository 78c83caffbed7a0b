CREATE TABLE loose (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ts_us bigint NOT NULL,
    kind text NOT NULL,
    version integer NOT NULL,
    actor text NOT NULL,
    role text NOT NULL,
    cause text NOT NULL,
    noun text NOT NULL,
    noun_id text NOT NULL,
    facts bytea NOT NULL
);
CREATE INDEX loose_by_xact ON loose (xact);
CREATE TABLE seal (seq bigint PRIMARY KEY, id bigint NOT NULL UNIQUE, hash bytea NOT NULL);
ALTER TABLE head ADD sealed xid8 NOT NULL DEFAULT '0';

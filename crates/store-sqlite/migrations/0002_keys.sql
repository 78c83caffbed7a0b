-- Derived from the log with the row: when it wants to be looked at, and a key under which rows of its
-- noun are listed. Most rows have neither, and are in neither index.
ALTER TABLE item ADD COLUMN due_us INTEGER;
ALTER TABLE item ADD COLUMN under TEXT;

CREATE INDEX item_by_due ON item (noun, due_us, id) WHERE due_us IS NOT NULL;
CREATE INDEX item_by_under ON item (noun, under, id) WHERE under IS NOT NULL;

"""A second verifier for exported ledgers, written from docs/ledger-format.md alone.

Usage: verify.py DIRECTORY [PUBLIC-KEY ...]. Prints one line; exits with 0 if the files verify, else with 1.
Without a key it trusts the key in the first entry, and no key that a later entry names.
Needs only Python 3, and shares no code with the program that wrote the files.
"""

import base64
import gzip
import hashlib
import json
import pathlib
import struct
import sys
import time
import zlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ZERO = bytes(32)
KEYS = ["seq", "ts_us", "kind", "version", "actor", "role", "cause", "noun", "noun_id", "facts"]


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def require(condition, what):
    if not condition:
        raise ValueError(what)


# Ed25519 as in RFC 8032, section 5.1. Points are (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z.


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def decompress(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    require(y < P, "not a point")
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    require((x * x - x2) % P == 0 and (x or not sign), "not a point")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signature_is_good(public, message, signature):
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L
    left, right = multiply(s, BASE), add(decompress(r), multiply(h, decompress(public)))
    same = all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))
    return len(signature) == 64 and s < L and same


def parse_key(vkey):
    name, key_id, data = vkey.split("+", 2)
    public = base64.b64decode(data)
    require(public[0] == 1 and len(public) == 33, "not an ed25519 key")
    require(sha256(name.encode(), b"\n", public)[:4].hex() == key_id, "the key's id is wrong")
    return (name, key_id), public[1:]


def open_note(note, vkeys):
    """Verifies a signed note and returns its text. At least one key must have signed it."""
    keys, signed = dict(map(parse_key, vkeys)), False
    text, lines = note.rsplit("\n\n", 1)
    for line in lines.splitlines():
        dash, signer, data = line.split(" ")
        data = base64.b64decode(data)
        public = keys.get((signer, data[:4].hex()))
        if dash == "\u2014" and public:
            require(signature_is_good(public, (text + "\n").encode(), data[4:]), "wrong signature")
            signed = True
    require(signed, "not signed by a known key")
    return text + "\n"


def prefixed(data):
    return struct.pack(">I", len(data)) + data


def split_line(line):
    """The values of a line by key, as raw bytes and parsed."""
    raw, parsed, at, decode = {}, {}, 0, json.JSONDecoder().raw_decode
    require(line[0] == "{" and line[-1] == "}", "not an object")
    while line[at] != "}":
        key, at = decode(line, at + 1)
        require(line[at] == ":" and key not in raw, "bad or repeated key")
        value, end = decode(line, at + 1)
        raw[key], parsed[key], at = line[at + 1 : end].encode(), value, end
    require(at == len(line) - 1, "data after the entry")
    return raw, parsed


def entry_hash(line, prev):
    raw, it = split_line(line)
    private = ZERO
    keys = KEYS + ["hash"]
    if "salt" in it:
        keys = KEYS + ["salt", "private", "hash"]
        salt = bytes.fromhex(it["salt"])
        private = sha256(b"midwatch-private/v1", salt, prefixed(raw["private"]))
    require(list(it) == keys, "keys are missing, unknown or out of order")
    facts = sha256(b"midwatch-facts/v1", prefixed(raw["facts"]))
    body = sha256(b"midwatch-body/v1", facts, private)
    texts = [prefixed(it[key].encode()) for key in KEYS[4:9]]
    place = struct.pack(">Q", it["seq"]) + prev + struct.pack(">q", it["ts_us"])
    kind = prefixed(it["kind"].encode()) + struct.pack(">H", it["version"])
    return it, sha256(b"midwatch-ledger/v1", place, kind, *texts, body)


def append(subtrees, leaf):
    """Subtrees are (size, root), largest first."""
    size, root = 1, sha256(b"\0", leaf)
    while subtrees and subtrees[-1][0] == size:
        root = sha256(b"\1", subtrees.pop()[1], root)
        size *= 2
    subtrees.append((size, root))


def head_of(subtrees, prev):
    root = subtrees[-1][1] if subtrees else sha256()
    for _, left in reversed(subtrees[:-1]):
        root = sha256(b"\1", left, root)
    return {"size": sum(size for size, _ in subtrees), "head": prev.hex(), "root": root.hex()}


def lines_of(directory, month, manifest):
    """The new lines if they match the manifest, else the existing lines, with their path."""
    path = directory / f"ledger-{month}.ndjson.gz.new"
    if path.exists():
        try:
            lines = gzip.decompress(path.read_bytes())
            if (manifest["bytes"], manifest["sha256"]) == (len(lines), sha256(lines).hex()):
                return path, lines
        except (OSError, EOFError, zlib.error):
            pass
    path = directory / f"ledger-{month}.ndjson.gz"
    return path, gzip.decompress(path.read_bytes())


def verify(directory, vkeys):
    subtrees, prev, previous, ts_us, instance = [], ZERO, None, 0, None
    manifests = sorted(directory.glob("ledger-*.manifest"))
    months = [path.name[7:14] for path in manifests]
    without_manifest = {path.name[7:14] for path in directory.glob("ledger-*.ndjson.gz")} - set(months)
    require(months and not without_manifest, "files are missing")
    for month, path in zip(months, manifests):
        note = path.read_bytes()
        # Not trusted before its signature is checked below; the key may be in the lines.
        claimed = json.loads(note.decode().split("\n")[1])
        file, lines = lines_of(directory, month, claimed)
        first = json.loads(lines.split(b"\n", 1)[0])
        if first["seq"] == 1:
            instance, vkeys = first["facts"]["instance"], vkeys or [first["facts"]["key"]]
        tag, text, _ = open_note(note.decode(), vkeys).split("\n")
        manifest = json.loads(text)
        require(tag == "midwatch-manifest/v1", f"{path.name}: unsupported format")
        require((manifest["instance"], manifest["month"]) == (instance, month), f"{path.name}: misplaced")
        require(manifest.get("previous") == previous, f"{path.name}: a month is missing")
        require(manifest["before"] == head_of(subtrees, prev), f"{path.name}: does not continue the previous month")
        require(manifest["bytes"] == len(lines), f"{file.name}: wrong length")
        require(manifest["sha256"] == sha256(lines).hex(), f"{file.name}: wrong sha256")
        for line in lines.decode().split("\n")[:-1]:
            it, found = entry_hash(line, prev)
            seq = head_of(subtrees, prev)["size"] + 1
            require(it["seq"] == seq and ts_us <= it["ts_us"], f"{file.name}: entry {seq} is misplaced")
            require(it["hash"] == found.hex(), f"{file.name}: entry {seq} was changed")
            require(seq > 1 or it["kind"] == "genesis", f"{file.name}: no genesis")
            day = time.gmtime(it["ts_us"] // 1_000_000)
            require(time.strftime("%Y-%m", day) == month, f"{file.name}: entry {seq} belongs to another month")
            append(subtrees, found)
            prev, ts_us = found, it["ts_us"]
        require(manifest["after"] == head_of(subtrees, prev), f"{path.name}: wrong end")
        previous = sha256(note).hex()
    return head_of(subtrees, prev)


if __name__ == "__main__":
    try:
        end = verify(pathlib.Path(sys.argv[1]), sys.argv[2:])
        print("ok", end["size"], end["root"])
    except (ValueError, KeyError, IndexError, OSError, EOFError, zlib.error) as error:
        print("bad:", error)
        sys.exit(1)

//! Keys, signed notes and checkpoints against the reference implementation, in both directions.

use ledger::{
    Checkpoint, Hash, NoteError, SigningKey, VerifyingKey, open_checkpoint, sign_checkpoint,
};
use proptest::prelude::*;
use signed_note::{Note, StandardSigner, StandardVerifier, VerifierList};

use crate::support::{key, other_key};

fn checkpoint(origin: &str, size: u64, root: [u8; 32]) -> Checkpoint {
    Checkpoint { origin: origin.to_owned(), size, root: Hash::from_bytes(root) }
}

fn any_checkpoint() -> impl Strategy<Value = Checkpoint> {
    ("[a-z0-9./-]{1,40}", any::<u64>(), any::<[u8; 32]>())
        .prop_map(|(origin, size, root)| checkpoint(&origin, size, root))
}

fn any_key() -> impl Strategy<Value = SigningKey> {
    ("[^\\s+\\p{C}]{1,20}", any::<[u8; 32]>())
        .prop_map(|(name, seed)| SigningKey::from_seed(&name, seed).unwrap())
}

proptest! {
    #[test]
    fn reference_implementation_opens_our_notes(checkpoint in any_checkpoint(), key in any_key()) {
        let text = sign_checkpoint(&checkpoint, &[&key]);
        let note = Note::from_bytes(text.as_bytes()).unwrap();
        let verifier = StandardVerifier::new(&key.verifying_key().to_text()).unwrap();
        let verifiers = VerifierList::new(vec![Box::new(verifier)]);
        prop_assert_eq!(note.verify(&verifiers).unwrap().0.len(), 1);

        let theirs = tlog_tiles::Checkpoint::from_bytes(note.text()).unwrap();
        prop_assert_eq!(theirs.origin(), checkpoint.origin);
        prop_assert_eq!(theirs.size(), checkpoint.size);
        prop_assert_eq!(&theirs.hash().0, checkpoint.root.as_bytes());
    }

    #[test]
    fn we_open_notes_of_the_reference_implementation(checkpoint in any_checkpoint(), key in any_key()) {
        let root = tlog_tiles::tlog::Hash(*checkpoint.root.as_bytes());
        let text = tlog_tiles::Checkpoint::new(&checkpoint.origin, checkpoint.size, root, "").unwrap();
        let mut note = Note::new(&text.to_bytes(), &[]).unwrap();
        note.add_sigs(&[&StandardSigner::new(&key.to_text()).unwrap()]).unwrap();
        let note = String::from_utf8(note.to_bytes()).unwrap();

        prop_assert_eq!(open_checkpoint(&note, &[key.verifying_key().clone()]), Ok(checkpoint.clone()));
        prop_assert_eq!(note, sign_checkpoint(&checkpoint, &[&key]));
    }

    #[test]
    fn keys_round_trip_as_text_and_debug_hides_the_secret(key in any_key()) {
        let text = key.to_text();
        prop_assert_eq!(&SigningKey::from_text(&text).unwrap().to_text(), &text);
        let public = key.verifying_key();
        prop_assert_eq!(&VerifyingKey::parse(&public.to_text()).unwrap(), public);
        let debug = format!("{key:?}");
        prop_assert!(!debug.contains(text.splitn(5, '+').last().unwrap()));
    }
}

#[test]
fn key_of_the_specification_s_example() {
    let secret = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
    let public = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    let key = SigningKey::from_text(secret).unwrap();
    assert_eq!(key.to_text(), secret);
    assert_eq!(key.verifying_key().to_text(), public);
}

#[test]
fn damaged_keys_are_refused() {
    let text = key().verifying_key().to_text();
    let (rest, base64) = text.rsplit_once('+').unwrap();
    let (name, id) = rest.rsplit_once('+').unwrap();
    for damaged in [
        format!("{name}+00000000+{base64}"),
        format!("{name}x+{id}+{base64}"),
        format!("{name}+{id}+{}", &base64[..base64.len() - 4]),
        format!("{name}+{id}+Ag{}", &base64[2..]),
        format!("+{id}+{base64}"),
        format!("a b+{id}+{base64}"),
        format!("{name}+{}+{base64}", id.to_uppercase()),
        name.to_owned(),
        String::new(),
    ] {
        assert!(VerifyingKey::parse(&damaged).is_err(), "{damaged}");
        assert!(SigningKey::from_text(&format!("PRIVATE+KEY+{damaged}")).is_err(), "{damaged}");
    }
    assert!(SigningKey::from_seed("a+b", [0; 32]).is_err());
    assert!(SigningKey::from_seed("", [0; 32]).is_err());
}

#[test]
fn one_known_signature_suffices_and_a_wrong_one_refuses() {
    let (ours, theirs) = (key(), other_key());
    let [our_key, their_key] = [&ours, &theirs].map(|key| key.verifying_key().clone());
    let checkpoint = checkpoint("midwatch/x", 3, [9; 32]);
    let both = sign_checkpoint(&checkpoint, &[&ours, &theirs]);
    for keys in
        [vec![our_key.clone()], vec![their_key.clone()], vec![our_key.clone(), their_key.clone()]]
    {
        assert_eq!(open_checkpoint(&both, &keys), Ok(checkpoint.clone()));
    }

    let by_us = sign_checkpoint(&checkpoint, &[&ours]);
    assert!(matches!(open_checkpoint(&by_us, &[their_key]), Err(NoteError::UnknownKey { .. })));
    assert!(matches!(open_checkpoint(&by_us, &[]), Err(NoteError::UnknownKey { .. })));
    let moved = both.replace("\n3\n", "\n4\n");
    assert!(matches!(open_checkpoint(&moved, &[our_key]), Err(NoteError::BadSignature { .. })));
}

#[test]
fn only_the_canonical_checkpoint_text_parses() {
    let key = key();
    let keys = [key.verifying_key().clone()];
    let good = sign_checkpoint(&checkpoint("midwatch/x", 3, [9; 32]), &[&key]);
    assert!(open_checkpoint(&good, &keys).is_ok());
    let root = good.lines().nth(2).unwrap();
    for text in [
        format!("midwatch/x\n03\n{root}\n"),
        format!("midwatch/x\n+3\n{root}\n"),
        format!("midwatch/x\n3\n{root}\nmore\n"),
        format!("midwatch/x\n3\n{}\n", &root[..40]),
        format!("\n3\n{root}\n"),
        "midwatch/x\n3\n".to_owned(),
    ] {
        let mut note = Note::new(text.as_bytes(), &[]).unwrap();
        note.add_sigs(&[&StandardSigner::new(&key.to_text()).unwrap()]).unwrap();
        let note = String::from_utf8(note.to_bytes()).unwrap();
        assert_eq!(
            open_checkpoint(&note, &keys),
            Err(NoteError::Content("a checkpoint")),
            "{text}"
        );
    }
}

#[test]
fn note_size_and_signature_count_are_limited() {
    let key = key();
    let keys = [key.verifying_key().clone()];
    let checkpoint = checkpoint("midwatch/x", 3, [9; 32]);
    let many = |count| sign_checkpoint(&checkpoint, &vec![&key; count]);
    assert!(open_checkpoint(&many(ledger::SIGNATURES_MAX), &keys).is_ok());
    assert!(matches!(
        open_checkpoint(&many(ledger::SIGNATURES_MAX + 1), &keys),
        Err(NoteError::Malformed(_))
    ));
    assert!(matches!(open_checkpoint(&many(0), &keys), Err(NoteError::Malformed(_))));
    let long = "x".repeat(ledger::NOTE_BYTES_MAX + 1);
    assert_eq!(open_checkpoint(&long, &keys), Err(NoteError::Malformed("it is too long")));
}

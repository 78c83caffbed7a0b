//! What a noun is: everything that has rows and events of its own. The `nouns!` table in `lib.rs` lists them.
//!
//! The enums [`Noun`], [`State`] and [`EventBody`] follow from the table, and so do decoding, serialisation and
//! typed access to rows. A noun's module says the rest: [`NounState`] for its state, [`NounEvent`] and a `kinds!` table
//! for its events. No rule lives here.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::counter::Counter;
use crate::event::StoredEvent;
use crate::private_fields::PrivateField;
use crate::time::Timestamp;
use crate::{EventBody, Noun, State};

/// The state of one row, derived from events.
pub trait NounState: StateVariant + Serialize + DeserializeOwned {
    /// What the row is found by.
    type Id: AsRef<str> + ToOwned + ?Sized + Sync;

    /// The most objects that an installation may have, for a noun whose events count them in
    /// [`Counter::Objects`].
    const OBJECTS_MAX: i64 = i64::MAX;

    /// Returns the state after an event that changes the row with this id. An event of any noun may change it:
    /// [`NounEvent::changed_rows`] of that event lists the row.
    fn apply(id: &str, state: Option<Self>, body: &EventBody) -> Option<Self>;

    /// The time by which the due index sorts the row; `None` keeps the row out of the index. Most nouns are handled at
    /// that time; a run stays in the index until its outcome is known.
    fn due(&self) -> Option<Timestamp> {
        None
    }

    /// The secondary key that it can be listed by.
    fn index_key(&self) -> Option<String> {
        None
    }
}

/// An event of one noun: what it changes, and which of its fields are private.
pub trait NounEvent: StoredEvent {
    /// The state of the noun that the event belongs to.
    type State: NounState;

    /// Returns the rows that the event changes; the default is the row of its own noun.
    fn changed_rows(&self, id: &<Self::State as NounState>::Id) -> Vec<ChangedRow> {
        vec![ChangedRow::existing::<Self::State>(id)]
    }

    /// Returns what the event adds to counters.
    fn counter_deltas(&self) -> Vec<(Counter, i64)> {
        Vec::new()
    }

    /// Returns the texts that people and programs wrote, which are stored apart from the facts.
    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        Vec::new()
    }
}

/// A state that has a variant of [`State`]. The `nouns!` table implements it.
pub trait StateVariant: Sized {
    const NOUN: Noun;

    /// Returns the state of this noun, unless it is the state of another one.
    fn from_state(state: State) -> Option<Self>;

    /// Returns a reference to the state of this noun, unless it is the state of another one.
    fn from_state_ref(state: &State) -> Option<&Self>;
}

/// The id of a row as an event holds it.
pub type OwnedId<T> = <<T as NounState>::Id as ToOwned>::Owned;

/// A row that an event changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRow {
    pub noun: Noun,
    pub id: String,
    /// Whether the row cannot exist yet.
    pub is_new: bool,
}

impl ChangedRow {
    /// A row that may exist.
    pub fn existing<T: NounState>(id: &T::Id) -> ChangedRow {
        ChangedRow { noun: T::NOUN, id: id.as_ref().to_owned(), is_new: false }
    }

    /// A row that cannot exist yet.
    pub fn new<T: NounState>(id: &T::Id) -> ChangedRow {
        ChangedRow { noun: T::NOUN, id: id.as_ref().to_owned(), is_new: true }
    }
}

impl State {
    /// The state as `T`; `None` if the row belongs to another noun.
    pub fn get<T: NounState>(&self) -> Option<&T> {
        T::from_state_ref(self)
    }

    /// The state as `T`, by value; `None` if the row belongs to another noun.
    pub fn into_inner<T: NounState>(self) -> Option<T> {
        T::from_state(self)
    }
}

/// A row of the table: noun, stored name, type of its state, and type of its events if it has any.
macro_rules! nouns {
    ($($noun:ident $name:literal $state:ty $(, $event:ty)?;)*) => {
        /// The kind of a derived row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Noun {
            $($noun,)*
        }

        impl Noun {
            /// The stored name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Noun::$noun => $name,)*
                }
            }

            /// The most objects that an installation may have.
            pub(crate) const fn objects_max(self) -> i64 {
                match self {
                    $(Noun::$noun => <$state as NounState>::OBJECTS_MAX,)*
                }
            }
        }

        /// The state of a row of any noun.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum State {
            $($noun($state),)*
        }

        $(impl StateVariant for $state {
            const NOUN: Noun = Noun::$noun;

            fn from_state(state: State) -> Option<Self> {
                match state {
                    State::$noun(state) => Some(state),
                    _ => None,
                }
            }

            fn from_state_ref(state: &State) -> Option<&Self> {
                match state {
                    State::$noun(state) => Some(state),
                    _ => None,
                }
            }
        })*

        impl State {
            /// Returns the state of a row after an event that changes the row.
            pub(crate) fn apply(
                noun: Noun,
                id: &str,
                state: Option<State>,
                body: &EventBody,
            ) -> Option<State> {
                match noun {
                    $(Noun::$noun => {
                        let state = state.and_then(<$state>::from_state);
                        <$state as NounState>::apply(id, state, body).map(State::$noun)
                    })*
                }
            }

            /// The time by which the due index sorts the row.
            pub fn due(&self) -> Option<Timestamp> {
                match self {
                    $(State::$noun(state) => state.due(),)*
                }
            }

            /// The secondary key that it can be listed by.
            pub fn index_key(&self) -> Option<String> {
                match self {
                    $(State::$noun(state) => state.index_key(),)*
                }
            }

            /// Decodes the stored body of a row.
            pub fn decode<'de, D: Deserializer<'de>>(
                noun: Noun,
                body: D,
            ) -> Result<State, D::Error> {
                match noun {
                    $(Noun::$noun => <$state>::deserialize(body).map(State::$noun),)*
                }
            }
        }

        /// The stored body of a row.
        impl Serialize for State {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(State::$noun(state) => state.serialize(out),)*
                }
            }
        }

        /// What happened, with the id of the noun it happened to.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum EventBody {
            $($($noun(OwnedId<$state>, $event),)?)*
        }

        impl EventBody {
            /// The noun that it happened to.
            pub const fn noun(&self) -> Noun {
                match self {
                    $($(EventBody::$noun(..) => {
                        <<$event as NounEvent>::State as StateVariant>::NOUN
                    })?)*
                }
            }

            /// Every kind of event with its version, by noun.
            pub fn kinds() -> impl Iterator<Item = (&'static str, u16)> {
                [$($(<$event as StoredEvent>::KINDS,)?)*].into_iter().flatten().copied()
            }

            /// What says how to decode its stored form.
            pub fn label(&self) -> Label<'_> {
                match self {
                    $($(EventBody::$noun(id, event) => {
                        let (kind, version) = <$event as StoredEvent>::kind(event);
                        Label { kind, version, noun_id: id.as_str() }
                    })?)*
                }
            }

            /// Decodes a stored event from its label and its facts.
            pub fn decode<'de, D>(label: Label<'_>, facts: D) -> Result<EventBody, D::Error>
            where
                D: Deserializer<'de>,
            {
                let kind = (label.kind, label.version);
                $($(if <$event as StoredEvent>::KINDS.contains(&kind) {
                    let id = label.noun_id.parse().map_err(D::Error::custom)?;
                    return <$event>::decode(label, facts).map(|event| EventBody::$noun(id, event));
                })?)*
                Err(unknown_kind(label))
            }

            /// Returns the rows that the event changes.
            pub fn changed_rows(&self) -> Vec<ChangedRow> {
                match self {
                    $($(EventBody::$noun(id, event) => {
                        <$event as NounEvent>::changed_rows(event, id)
                    })?)*
                }
            }

            /// Returns what the event adds to counters.
            pub fn counter_deltas(&self) -> Vec<(Counter, i64)> {
                match self {
                    $($(EventBody::$noun(_, event) => {
                        <$event as NounEvent>::counter_deltas(event)
                    })?)*
                }
            }

            /// Returns the private fields of the event.
            pub(crate) fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
                match self {
                    $($(EventBody::$noun(_, event) => {
                        <$event as NounEvent>::private_fields_mut(event)
                    })?)*
                }
            }
        }

        /// The facts of an event: the stored form of its body.
        impl Serialize for EventBody {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($(EventBody::$noun(_, event) => <$event>::serialize(event, out),)?)*
                }
            }
        }
    };
}
pub(crate) use nouns;

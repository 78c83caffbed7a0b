//! The kind of a key: its field in [`Config`], the type of the field, and its limits.

use super::raw::Raw;
use super::value::{ConfigValue, RangedValue};
use super::{Config, Setting};

/// What a key accepts, and where its value goes.
pub(super) trait Kind: Sync {
    /// What a value is, to follow "must be".
    fn expected(&self) -> String;

    /// Parses `raw` and stores it. Returns the value as `config show` prints it.
    fn set(&self, config: &mut Config, raw: &Raw) -> Result<Setting, Invalid>;

    /// Whether a wrong value may be a secret and must not be quoted.
    fn is_secret(&self) -> bool;
}

/// Why a value was refused: what it must be, and perhaps how to correct it.
#[derive(Debug)]
pub(super) struct Invalid {
    pub(super) expected: String,
    pub(super) hint: Option<String>,
}

/// A field that holds any value of its type.
pub(super) struct Field<T>(pub(super) fn(&mut Config) -> &mut T);

/// A field with limits.
pub(super) struct Ranged<T> {
    pub(super) field: fn(&mut Config) -> &mut T,
    pub(super) min: T,
    pub(super) max: T,
}

impl<T: ConfigValue> Kind for Field<T> {
    fn expected(&self) -> String {
        T::expected()
    }

    fn set(&self, config: &mut Config, raw: &Raw) -> Result<Setting, Invalid> {
        let invalid = || Invalid { expected: self.expected(), hint: T::hint(raw) };
        let value = T::parse(raw).ok_or_else(invalid)?;
        let setting = value.setting(raw);
        *(self.0)(config) = value;
        Ok(setting)
    }

    fn is_secret(&self) -> bool {
        T::IS_SECRET
    }
}

impl<T: RangedValue + Sync> Kind for Ranged<T> {
    fn expected(&self) -> String {
        T::expected_between(self.min, self.max)
    }

    fn set(&self, config: &mut Config, raw: &Raw) -> Result<Setting, Invalid> {
        let invalid = || Invalid { expected: self.expected(), hint: T::hint(raw) };
        let value = T::parse(raw).filter(|value| value.is_between(self.min, self.max));
        let value = value.ok_or_else(invalid)?;
        let setting = value.setting(raw);
        *(self.field)(config) = value;
        Ok(setting)
    }

    fn is_secret(&self) -> bool {
        T::IS_SECRET
    }
}

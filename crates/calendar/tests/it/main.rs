//! Tests of the public API.

#[cfg(test)]
mod cron_days;
#[cfg(test)]
mod cron_errors;
#[cfg(test)]
mod croner;
#[cfg(test)]
mod daylight_saving;
#[cfg(test)]
mod describe;
#[cfg(test)]
mod hostile_input;
#[cfg(test)]
mod jitter;
#[cfg(test)]
mod no_next_slot;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod oracle_comparison;
#[cfg(test)]
mod parsing;
#[cfg(test)]
mod stored_format;
#[cfg(test)]
mod support;
#[cfg(test)]
mod vectors;

//! The kernel from outside.

#[cfg(test)]
mod approval;
#[cfg(test)]
mod decision;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod happenings;
#[cfg(test)]
mod life;
#[cfg(test)]
mod made;
#[cfg(test)]
mod notice;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod run;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod slot;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tick;
#[cfg(test)]
mod tool;

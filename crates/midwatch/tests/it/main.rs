//! The program as its users meet it.

#[cfg(test)]
mod approval_story;
#[cfg(test)]
mod authority_story;
#[cfg(test)]
mod clock_story;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod notice_story;
#[cfg(test)]
mod people;
#[cfg(test)]
mod principals;
#[cfg(test)]
mod promptyoself;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod storage;
#[cfg(test)]
mod story;
#[cfg(test)]
mod tamper;
#[cfg(test)]
mod world;

//! The store on a real PostgreSQL.

#[cfg(test)]
mod conform;
#[cfg(test)]
mod places;

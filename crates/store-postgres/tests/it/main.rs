//! The store on a real PostgreSQL.

#[cfg(test)]
mod access;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod conform;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod feed;
#[cfg(test)]
mod lost_answers;
#[cfg(test)]
mod node;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod places;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod races;
#[cfg(test)]
mod work;

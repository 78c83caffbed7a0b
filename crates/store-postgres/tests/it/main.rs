//! Tests of the store on a real PostgreSQL server.

#[cfg(test)]
mod access;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crash_campaign;
#[cfg(test)]
mod databases;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod feed;
#[cfg(test)]
mod lost_connections;
#[cfg(test)]
mod node;
#[cfg(test)]
mod password;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod races;
#[cfg(test)]
mod workload;

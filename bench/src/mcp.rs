//! The MCP server beside those of the Python and the TypeScript SDK: the same requests, written by the same driver.
//!
//! All servers are up at once and are asked in turn, round by round, so that what else the machine does falls on
//! each of them alike. The ratios are those of a round, and the middle one is shown.

mod hop;
mod lines;
mod places;
mod web;

use std::time::Instant;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use crate::{machine, spread};
use hop::Hop;
use lines::Lines;
use places::{Peers, Place};
use web::Web;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Turns of every server
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Calls of each turn
    #[arg(long, default_value_t = 300)]
    calls: usize,
    /// Starts of each server
    #[arg(long, default_value_t = 5)]
    starts: usize,
}

/// Whoever carries a message and brings its answer.
trait Carrier {
    fn ask(&mut self, message: &Value) -> anyhow::Result<Value>;
    /// Some hang up on whoever was silent while others had their turn.
    fn renew(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
    /// Of whoever answers.
    fn pid(&self) -> u32;
}

/// A server, and what it was found to need.
struct Peer {
    name: &'static str,
    tool: Value,
    carrier: Box<dyn Carrier>,
    last_id: u64,
    /// Median and 99th percentile of each round, in milliseconds.
    rounds: Vec<(f64, f64)>,
}

/// Beside which the others are set.
const BESIDE: &str = "typescript";

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let peers = Peers::install()?;
    println!("load     {}", machine::load_average());
    for transport in ["http", "stdio"] {
        let mut open = Vec::new();
        for place in Place::ALL {
            open.push(Peer::open(&peers, place, transport)?);
        }
        if transport == "stdio" {
            open.push(Peer::hop()?);
        }
        // The call of a tool, and what each server answers by itself.
        for method in ["tools/call", "ping"] {
            for peer in &mut open {
                peer.turn(method, options.calls.min(100))?;
                peer.rounds.clear();
            }
            for _ in 0..options.rounds {
                for peer in &mut open {
                    peer.turn(method, options.calls)?;
                }
            }
            print(transport, method, &open)?;
        }
    }
    starts(&peers, options.starts)
}

impl Peer {
    fn open(peers: &Peers, place: Place, transport: &str) -> anyhow::Result<Peer> {
        let carrier: Box<dyn Carrier> = match transport {
            "http" => Box::new(Web::open(place.http(peers)?)?),
            _ => Box::new(Lines::open(place.stdio(peers)?)?),
        };
        let tool = place.tool();
        let mut peer = Peer { name: place.name(), tool, carrier, last_id: 0, rounds: vec![] };
        peer.greet()?;
        Ok(peer)
    }

    /// Nobody, at the end of as long a way as a call that the daemon is asked for.
    fn hop() -> anyhow::Result<Peer> {
        let (carrier, tool) = (Box::new(Hop::open()?), json!({}));
        Ok(Peer { name: "the way alone", tool, carrier, last_id: 0, rounds: vec![] })
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        self.ask("initialize", hello)?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.carrier.ask(&initialized).map(drop)
    }

    fn ask(&mut self, method: &str, parameters: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let asked = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        let answer = self.carrier.ask(&asked)?;
        let result = answer.get("result").with_context(|| format!("{}: {answer}", self.name))?;
        anyhow::ensure!(result.get("isError") != Some(&json!(true)), "{}: {result}", self.name);
        Ok(result.clone())
    }

    fn turn(&mut self, method: &str, calls: usize) -> anyhow::Result<()> {
        self.carrier.renew()?;
        let parameters = if method == "ping" { json!({}) } else { self.tool.clone() };
        let mut spans = Vec::with_capacity(calls);
        for _ in 0..calls {
            let started = Instant::now();
            self.ask(method, parameters.clone())?;
            spans.push(started.elapsed().as_secs_f64() * 1e3);
        }
        spans.sort_by(f64::total_cmp);
        let at = |part: usize| spans.get(calls * part / 100).copied().unwrap_or(f64::NAN);
        self.rounds.push((at(50), at(99)));
        Ok(())
    }

    /// In megabytes.
    fn resident(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.carrier.pid()))?;
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes / 1e3)
    }
}

fn print(transport: &str, method: &str, open: &[Peer]) -> anyhow::Result<()> {
    let beside = open.iter().find(|peer| peer.name == BESIDE).context("nobody to compare with")?;
    let beside_resident = beside.resident()?;
    println!("{method} over {transport}, beside {BESIDE}");
    for peer in open {
        let middle = |of: fn(&(f64, f64)) -> f64| spread(peer.rounds.iter().map(of).collect()).0;
        let ratio = |of: fn(&(f64, f64)) -> f64| {
            let pairs = peer.rounds.iter().zip(&beside.rounds);
            spread(pairs.map(|(own, other)| of(own) / of(other)).collect()).0
        };
        let resident = peer.resident()?;
        println!(
            "  {:<20} p50 {:>7.3} ms ({:>5.2})  p99 {:>7.3} ms ({:>5.2})  resident {:>5.1} MB ({:>4.2})",
            peer.name,
            middle(|it| it.0),
            ratio(|it| it.0),
            middle(|it| it.1),
            ratio(|it| it.1),
            resident,
            resident / beside_resident,
        );
    }
    Ok(())
}

/// From the start of the process to its first list of tools, over stdio.
fn starts(peers: &Peers, times: usize) -> anyhow::Result<()> {
    println!("start to tools/list over stdio, beside {BESIDE}");
    let mut spans = vec![Vec::new(); Place::ALL.len()];
    for _ in 0..times {
        for (place, spans) in Place::ALL.into_iter().zip(&mut spans) {
            let started = Instant::now();
            let mut peer = Peer::open(peers, place, "stdio")?;
            peer.ask("tools/list", json!({}))?;
            spans.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let beside = Place::ALL.into_iter().position(|place| place.name() == BESIDE);
    let beside = beside.and_then(|at| spans.get(at).cloned()).context("nobody to compare with")?;
    for (place, spans) in Place::ALL.into_iter().zip(spans) {
        let ratios = spans.iter().zip(&beside).map(|(own, other)| own / other).collect();
        println!(
            "  {:<20} {:>7.1} ms ({:.2})",
            place.name(),
            spread(spans.clone()).0,
            spread(ratios).0
        );
    }
    Ok(())
}

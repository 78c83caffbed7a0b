//! The MCP server compared with servers of the Python and TypeScript SDKs: the same requests from the same driver.
//!
//! All servers run at the same time and are called in turns, so that other load affects them alike. A ratio is computed
//! within a round; the median over the rounds is printed.

mod http;
mod relay;
mod servers;
mod stdio;

use std::time::Instant;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use crate::{machine, spread};
use http::HttpClient;
use relay::RelayClient;
use servers::{Peers, Server};
use stdio::StdioClient;

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

/// Sends messages to a server.
trait Client {
    /// Sends a message and waits for its response, unless it is a notification.
    fn call(&mut self, message: &Value) -> anyhow::Result<Value>;
    /// Connects again: some servers close connections that were idle during the turns of others.
    fn reconnect(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
    /// The process of the server.
    fn pid(&self) -> u32;
}

/// A server and its measurements.
struct Peer {
    name: &'static str,
    tool: Value,
    client: Box<dyn Client>,
    last_id: u64,
    /// Median and 99th percentile of each round, in milliseconds.
    rounds: Vec<(f64, f64)>,
}

/// The server that the others are compared with.
const BASELINE: &str = "typescript";

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let peers = Peers::install()?;
    println!("load     {}", machine::load_average());
    for transport in ["http", "stdio"] {
        let mut open = Vec::new();
        for server in Server::ALL {
            open.push(Peer::open(&peers, server, transport)?);
        }
        if transport == "stdio" {
            open.push(Peer::relay()?);
        }
        // A tool call, and a request that the protocol layer answers.
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
    fn open(peers: &Peers, server: Server, transport: &str) -> anyhow::Result<Peer> {
        let client: Box<dyn Client> = match transport {
            "http" => Box::new(HttpClient::open(server.http(peers)?)?),
            _ => Box::new(StdioClient::open(server.stdio(peers)?)?),
        };
        let tool = server.tool();
        let mut peer = Peer { name: server.name(), tool, client, last_id: 0, rounds: vec![] };
        peer.initialize()?;
        Ok(peer)
    }

    /// No server: only the pipes and the socket that a tool call passes.
    fn relay() -> anyhow::Result<Peer> {
        let (client, tool) = (Box::new(RelayClient::open()?), json!({}));
        Ok(Peer { name: "pipe and socket", tool, client, last_id: 0, rounds: vec![] })
    }

    fn initialize(&mut self) -> anyhow::Result<()> {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        self.call("initialize", hello)?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.client.call(&initialized).map(drop)
    }

    fn call(&mut self, method: &str, parameters: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        let answer = self.client.call(&request)?;
        let result = answer.get("result").with_context(|| format!("{}: {answer}", self.name))?;
        anyhow::ensure!(result.get("isError") != Some(&json!(true)), "{}: {result}", self.name);
        Ok(result.clone())
    }

    fn turn(&mut self, method: &str, calls: usize) -> anyhow::Result<()> {
        self.client.reconnect()?;
        let parameters = if method == "ping" { json!({}) } else { self.tool.clone() };
        let mut spans = Vec::with_capacity(calls);
        for _ in 0..calls {
            let started = Instant::now();
            self.call(method, parameters.clone())?;
            spans.push(started.elapsed().as_secs_f64() * 1e3);
        }
        spans.sort_by(f64::total_cmp);
        let at = |part: usize| spans.get(calls * part / 100).copied().unwrap_or(f64::NAN);
        self.rounds.push((at(50), at(99)));
        Ok(())
    }

    /// Resident memory in megabytes.
    fn resident(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.client.pid()))?;
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes / 1e3)
    }
}

fn print(transport: &str, method: &str, open: &[Peer]) -> anyhow::Result<()> {
    let baseline =
        open.iter().find(|peer| peer.name == BASELINE).context("the baseline is missing")?;
    let baseline_resident = baseline.resident()?;
    println!("{method} over {transport}, compared with {BASELINE}");
    for peer in open {
        let median = |of: fn(&(f64, f64)) -> f64| spread(peer.rounds.iter().map(of).collect()).0;
        let ratio = |of: fn(&(f64, f64)) -> f64| {
            let pairs = peer.rounds.iter().zip(&baseline.rounds);
            spread(pairs.map(|(own, other)| of(own) / of(other)).collect()).0
        };
        let resident = peer.resident()?;
        println!(
            "  {:<20} p50 {:>7.3} ms ({:>5.2})  p99 {:>7.3} ms ({:>5.2})  resident {:>5.1} MB ({:>4.2})",
            peer.name,
            median(|it| it.0),
            ratio(|it| it.0),
            median(|it| it.1),
            ratio(|it| it.1),
            resident,
            resident / baseline_resident,
        );
    }
    Ok(())
}

/// From the start of the process to its first list of tools, over stdio.
fn starts(peers: &Peers, times: usize) -> anyhow::Result<()> {
    println!("start to tools/list over stdio, compared with {BASELINE}");
    let mut spans = vec![Vec::new(); Server::ALL.len()];
    for _ in 0..times {
        for (server, spans) in Server::ALL.into_iter().zip(&mut spans) {
            let started = Instant::now();
            let mut peer = Peer::open(peers, server, "stdio")?;
            peer.call("tools/list", json!({}))?;
            spans.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    let baseline = Server::ALL.into_iter().position(|server| server.name() == BASELINE);
    let baseline =
        baseline.and_then(|index| spans.get(index).cloned()).context("the baseline is missing")?;
    for (server, spans) in Server::ALL.into_iter().zip(spans) {
        let ratios = spans.iter().zip(&baseline).map(|(own, other)| own / other).collect();
        println!(
            "  {:<20} {:>7.1} ms ({:.2})",
            server.name(),
            spread(spans.clone()).0,
            spread(ratios).0
        );
    }
    Ok(())
}

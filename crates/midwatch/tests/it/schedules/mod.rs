//! Schedules: their commands, times, runs and tool calls.

mod changes;
mod commands;
mod import_crontab;
mod interrupted_runs;
mod next;
mod sensitive;
mod tools;

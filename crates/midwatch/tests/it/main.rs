//! The program as its users meet it.

#[cfg(test)]
mod approval_page;
#[cfg(test)]
mod approval_story;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod authority_story;
#[cfg(test)]
mod budget_story;
#[cfg(test)]
mod clock_story;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod letta_story;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod mcp_client;
#[cfg(test)]
mod mcp_compat;
#[cfg(test)]
mod mcp_forged;
#[cfg(test)]
mod mcp_http;
#[cfg(test)]
mod mcp_human;
#[cfg(test)]
mod mcp_news;
#[cfg(test)]
mod mcp_pipe;
#[cfg(test)]
mod mcp_story;
#[cfg(test)]
mod mcp_tools;
#[cfg(test)]
mod mcp_web;
#[cfg(test)]
mod notice_story;
#[cfg(test)]
mod people;
#[cfg(test)]
mod principals;
#[cfg(test)]
mod promptyoself;
#[cfg(test)]
mod real_letta;
#[cfg(test)]
mod reload_story;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sensitive;
#[cfg(test)]
#[path = "../../../agents/tests/it/stand_in.rs"]
mod stand_in;
#[cfg(test)]
mod start_checks;
#[cfg(test)]
mod storage;
#[cfg(test)]
mod story;
#[cfg(test)]
mod tamper;
#[cfg(test)]
mod tool_story;
#[cfg(test)]
mod world;

// SPDX-License-Identifier: GPL-2.0

//! A connection, from what sysfs and debugfs say of it.

use serde::{ser::SerializeStruct, Serialize, Serializer};

use super::address::Address;
use crate::source::{switches::Xprt, values::Values};

/// The share of the congestion window that one credit has: `RPC_CWNDSCALE`.
const WINDOW_OF_A_CREDIT: u64 = 256;

/// Which end of the connection this machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum End {
    Client,
    Server,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Which end this machine is.
    pub end: End,
    /// The N of `xprt-N-rdma`, or the number of the server's connection.
    pub id: u32,
    /// What SUNRPC shows of a client's connection.
    pub xprt: Option<Xprt>,
    /// What the module in Rust shows. Empty without it, and without root.
    pub detail: Values,
}

impl Serialize for Connection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Connection", 9)?;
        fields.serialize_field("end", &self.end)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("peer", &self.peer())?;
        fields.serialize_field("source", &self.source())?;
        fields.serialize_field("state", &self.state())?;
        fields.serialize_field("credits_granted", &self.granted())?;
        fields.serialize_field("credits_used", &self.used())?;
        fields.serialize_field("xprt", &self.xprt)?;
        fields.serialize_field("detail", &self.detail)?;
        fields.end()
    }
}

impl Connection {
    /// The address of the other end, with its port where it is known.
    pub fn peer(&self) -> String {
        if let Some(peer) = self.detail.text("peer") {
            return peer.to_string();
        }
        let xprt = self.xprt.as_ref();
        xprt.map_or(String::new(), |xprt| with_port(&xprt.dstaddr, xprt.port()))
    }

    /// The address of this end, with its port where it is known, or an empty string.
    pub fn source(&self) -> String {
        if let Some(source) = self.detail.text("source") {
            return source.to_string();
        }
        let port = self.info("src_port").and_then(|port| port.try_into().ok());
        let xprt = self.xprt.as_ref();
        xprt.map_or(String::new(), |xprt| with_port(&xprt.srcaddr, port))
    }

    /// The address of the other end.
    pub fn address(&self) -> Address {
        Address::parse(&self.peer())
    }

    /// The state in a word.
    pub fn state(&self) -> String {
        if let Some(state) = self.detail.text("state") {
            return state.to_lowercase();
        }
        let Some(xprt) = &self.xprt else {
            return "unknown".to_string();
        };
        let word = if xprt.has("OFFLINE") {
            "offline"
        } else if xprt.is_connected() {
            "connected"
        } else if xprt.has("CONNECTING") {
            "connecting"
        } else {
            "closed"
        };
        word.to_string()
    }

    /// Whether RPCs can be sent.
    pub fn is_connected(&self) -> bool {
        match &self.xprt {
            Some(xprt) => xprt.is_connected(),
            None => matches!(&*self.state(), "connected" | "established"),
        }
    }

    /// Whether it carries callbacks only, and belongs to the server of this machine.
    pub fn is_backchannel(&self) -> bool {
        self.xprt.as_ref().is_some_and(Xprt::is_backchannel)
    }

    /// The credits that the server has granted.
    pub fn granted(&self) -> Option<u64> {
        let window = || self.window("cong_win");
        self.detail.number("credits_granted").or_else(window)
    }

    /// The credits that Calls hold.
    pub fn used(&self) -> Option<u64> {
        let detail = &self.detail;
        let shown = detail
            .number("credits_used")
            .or(detail.number("calls_in_flight"));
        shown.or_else(|| self.window("cur_cong"))
    }

    fn window(&self, name: &str) -> Option<u64> {
        let window = self.xprt.as_ref()?.info.number(name)?;
        Some(window / WINDOW_OF_A_CREDIT)
    }

    /// A number of `xprt_info`.
    pub fn info(&self, name: &str) -> Option<u64> {
        self.xprt.as_ref()?.info.number(name)
    }

    /// What to call the connection in a sentence.
    pub fn title(&self) -> String {
        match self.end {
            End::Client => format!("connection {} to {}", self.id, self.peer()),
            End::Server => format!("connection {} of client {}", self.id, self.peer()),
        }
    }
}

fn with_port(address: &str, port: Option<u16>) -> String {
    match port {
        Some(port) if port > 0 && address.contains(':') => format!("[{address}]:{port}"),
        Some(port) if port > 0 && !address.is_empty() => format!("{address}:{port}"),
        _ => address.to_string(),
    }
}

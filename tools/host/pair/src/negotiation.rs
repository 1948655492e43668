// SPDX-License-Identifier: GPL-2.0

//! The parameters that client and server negotiate when they connect.

use crate::rng::Rng;
use crate::scenario::Scenario;
use rpcrdma_core::engine::agreement::Agreement;
use rpcrdma_core::engine::agreement::Extensions;
use rpcrdma_core::engine::agreement::ReadDepths;
use rpcrdma_core::wire::extensions::Announcement;
use rpcrdma_core::wire::extensions::Offer;
use rpcrdma_core::wire::private_data::PrivateData;

/// The private data of client and server.
pub(crate) type Ends = [PrivateData; 2];

/// The parameters of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Negotiated {
    /// Thresholds, as the client computes them.
    pub(crate) client: Agreement,
    /// Thresholds, as the server computes them.
    pub(crate) server: Agreement,
    /// Extensions, which both ends compute.
    pub(crate) extensions: Extensions,
    /// Credits that the client requests.
    pub(crate) wanted: u32,
    /// Most credits that the server grants.
    pub(crate) max_requests: u32,
}

impl Negotiated {
    /// Negotiates a connection of ends with these sizes. All else is random.
    pub(crate) fn new(rng: &mut Rng, ends: &Ends, scenario: &Scenario) -> Self {
        let [client, server] = ends;
        let extensions = random_extensions(rng, ends);
        let (wanted, max_requests) = match scenario.credits {
            0 => (rng.range(1, 12), rng.range(1, 12)),
            credits => (credits, credits),
        };
        Self {
            client: Agreement::between(client, server),
            server: Agreement::between(server, client),
            extensions,
            wanted,
            max_requests,
        }
    }
}

/// Random private data of both ends.
pub(crate) fn random_ends(rng: &mut Rng) -> Ends {
    let mut end = || PrivateData {
        remote_invalidation: !rng.once_in(3),
        send_size: rng.pick(&[1024, 1024, 2048, 4096, 8192]),
        receive_size: rng.pick(&[1024, 1024, 2048, 4096, 8192]),
    };
    [end(), end()]
}

/// The extensions that follow from random offers. Both ends must compute the same.
fn random_extensions(rng: &mut Rng, ends: &Ends) -> Extensions {
    let mut offer = || Offer {
        pulled_replies: !rng.once_in(4),
    };
    let [client, server] = [offer(), offer()];
    let depths = ReadDepths {
        initiator_depth: rng.range(0, 9),
        responder_resources: rng.range(0, 9),
    };
    let received = |own, offer| Offer::of_peer(Announcement::new(own, offer).as_bytes());
    let at_client = Extensions::between(&client, &received(&ends[1], &server), &depths);
    let at_server = Extensions::between(&server, &received(&ends[0], &client), &depths);
    assert_eq!(at_client, at_server);
    at_client
}

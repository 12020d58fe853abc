//! The registry's description of a program.

/// The description of a program that `urtica run` accepts by name.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub name: &'static str,
    /// One line for the help text.
    pub text: &'static str,
    pub forwards: Forwards,
    pub sees: Sees,
    /// The service that it is, which others can build on.
    pub service: Option<Service>,
    /// Whether it answers for addresses of its own: then the neighbour proxy must not answer for it.
    pub has_gateways: bool,
}

impl About {
    /// A program that forwards nothing, and sees the packets that earlier programs leave.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            forwards: Forwards::Nothing,
            sees: Sees::Unanswered,
            service: None,
            has_gateways: false,
        }
    }

    /// One that forwards every packet.
    pub const fn forwarder(name: &'static str, text: &'static str) -> Self {
        Self {
            forwards: Forwards::All,
            ..Self::new(name, text)
        }
    }

    /// A service.
    pub const fn service(service: Service, text: &'static str) -> Self {
        Self {
            service: Some(service),
            sees: Sees::FirstOfFlow,
            ..Self::new(service.name(), text)
        }
    }
}

/// The packets that a program forwards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwards {
    Nothing,
    /// These packets; others are left to later programs.
    Only(&'static str),
    /// Everything: later programs see no packet-in.
    All,
}

/// Which packet-ins a program has to see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    /// All: it is added before all others, and the kernel may not answer in its place.
    Everything,
    /// Those that no earlier program answers.
    Unanswered,
    /// The first of each flow: the kernel may answer the others.
    FirstOfFlow,
}

/// A service that programs build on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Discovery,
    Hosts,
    NeighbourProxy,
    Provisioner,
    Routes,
}

impl Service {
    /// The name by which `urtica run` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discovery => "discovery",
            Self::Hosts => "hosts",
            Self::NeighbourProxy => "neighbour-proxy",
            Self::Provisioner => "provisioner",
            Self::Routes => "routes",
        }
    }
}

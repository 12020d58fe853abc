"""The versions of OpenFlow that applications want."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from ryu.ofproto import ofproto_v1_0, ofproto_v1_0_parser, ofproto_v1_3, ofproto_v1_3_parser
from urtica_ryu.loading import LoadError

_VERSIONS: dict[int, tuple[ModuleType, ModuleType]] = {
    ofproto_v1_0.OFP_VERSION: (ofproto_v1_0, ofproto_v1_0_parser),
    ofproto_v1_3.OFP_VERSION: (ofproto_v1_3, ofproto_v1_3_parser),
}

_supported_versions = set(_VERSIONS)


def set_app_supported_versions(versions: Iterable[int]) -> None:
    """Keeps the versions that an application supports, too."""
    versions = set(versions)
    both = _supported_versions & versions
    if not both:
        raise LoadError(
            f"the applications' OFP_VERSIONS have no version in common: {_text(versions)} after {_text(_supported_versions)}; "
            "expected 1 (OpenFlow 1.0) or 4 (OpenFlow 1.3) in each"
        )
    _supported_versions.intersection_update(both)


def _text(versions: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(versions)))


class ProtocolDesc:
    """The modules of a version: `ofproto` and `ofproto_parser`."""

    def __init__(self, version: int | None = None):
        self.supported_ofp_version = set(_supported_versions)
        self.set_version(max(self.supported_ofp_version) if version is None else version)

    def set_version(self, version: int) -> None:
        """Sets the version."""
        self.ofproto, self.ofproto_parser = _VERSIONS[version]

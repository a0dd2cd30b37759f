#!/usr/bin/env python3
"""Write what clouds ask for GPUs as a C table: embed_prices.py FOLDER OUTPUT.

Sorted by GPU, then by the price of one; left alone when nothing would change. An offer without a date, in another currency
than USD, or with a word that nobody knows, stops the build.
"""
from __future__ import annotations

import datetime
import json
import pathlib
import sys

import embedding

PRICING = {"on_demand": "FT_ON_DEMAND", "spot": "FT_SPOT", "reserved": "FT_RESERVED"}
NETWORK = {"rdma": "FT_NET_RDMA", "tcpx": "FT_NET_TCPX", "ethernet": "FT_NET_ETHERNET"}
HEAD = {"name", "title", "hyperscaler", "currency", "source", "network_source", "offers"}
OFFER = {"gpu", "instance", "gpus", "usd_per_hour", "pricing", "region", "network", "date"}


def offers(path: pathlib.Path) -> list[tuple]:
    said = json.loads(path.read_text())
    if set(said) != HEAD or said["name"] != path.stem or said["currency"] != "USD" or not said["source"]:
        sys.exit(f"{path}: it needs {sorted(HEAD)}, its own name, a source, and prices in USD")
    made = []
    for offer in said["offers"]:
        if set(offer) != OFFER or offer["gpus"] < 1 or not offer["usd_per_hour"] > 0:
            sys.exit(f"{path}: an offer needs {sorted(OFFER)}, GPUs and a price: {offer}")
        day = (datetime.date.fromisoformat(offer["date"]) - datetime.date(1970, 1, 1)).days
        fields = [f".gpu = {json.dumps(offer['gpu'])}", f".provider = {json.dumps(said['name'])}",
                  f".instance = {json.dumps(offer['instance'])}", f".region = {json.dumps(offer['region'])}",
                  f".date = {json.dumps(offer['date'])}", f".day = {day}", f".gpus = {offer['gpus']}",
                  f".usd_per_hour = {offer['usd_per_hour']!r}", f".pricing = {PRICING[offer['pricing']]}",
                  f".network = {NETWORK[offer['network']]}", f".hyperscaler = {str(said['hyperscaler']).lower()}"]
        key = (offer["gpu"], offer["usd_per_hour"] / offer["gpus"], said["name"], offer["instance"], offer["region"])
        made.append((key, "    {" + ", ".join(fields) + "},\n"))
    return made


def main() -> None:
    rows = sorted(row for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")) for row in offers(path))
    text = ('/* Made from data/prices/ by scripts/embed_prices.py. */\n#include "cost/prices.h"\n\n'
            f"const size_t ft__offer_count = {len(rows)};\nconst ft_offer ft__offers[] = {{\n"
            f"{''.join(row for _, row in rows)}}};\n")
    embedding.write(sys.argv[2], text)


if __name__ == "__main__":
    main()

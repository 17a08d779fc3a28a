"""Prices as customers see them.

Used by the catalogue export. Swiss prices are rounded to five centimes, Japanese
prices have no decimals, everything else ends in .90 above ten euros.
"""

from decimal import ROUND_HALF_UP, Decimal


def display_price(amount: Decimal, currency: str) -> Decimal:
    """Round a net price for display in the given currency."""
    if currency == "CHF":
        return (amount * 20).quantize(Decimal("1"), ROUND_HALF_UP) / 20
    if currency == "JPY":
        return amount.quantize(Decimal("1"), ROUND_HALF_UP)
    if amount > 10:
        return charm_price(amount)
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


def charm_price(amount: Decimal) -> Decimal:
    """The nearest price that ends in .90, never above what we calculated plus 40 cents."""
    whole = amount.to_integral_value(ROUND_HALF_UP)
    candidate = whole - Decimal("0.10")
    return candidate if candidate >= amount - Decimal("0.60") else candidate + 1

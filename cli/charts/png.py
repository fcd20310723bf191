"""SVG to PNG, with the optional library `resvg-py`."""

from tokcast.predictor.errors import InputError


def png_of(svg: str, zoom: float = 2.0) -> bytes:
    """Return the PNG of a drawing, `zoom` pixels to a unit.

    Raises InputError where the library is not installed.
    """
    try:
        import resvg_py
    except ImportError:
        raise InputError(
            "a .png needs the extra: pip install 'tokcast[plots]'; .svg works without"
        ) from None
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=zoom, font_family="DejaVu Sans"))

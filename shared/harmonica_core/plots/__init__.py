"""Pictures of explanations: data in, matplotlib Axes out, nothing shown or saved.

matplotlib is imported when the first picture is drawn. Colours (blue up, orange down)
are told apart with every common colour-vision deficiency, and never carry a meaning
alone. For what SHAP and Captum draw themselves (waterfall, beeswarm, coloured text,
heat maps over images) use their own functions on the results of the plug-ins.
"""

from harmonica_core.plots.curves import error_by_radius, trade_off
from harmonica_core.plots.interactions import heatmap, network
from harmonica_core.plots.on_input import superpixels, text
from harmonica_core.plots.spectrum import spectrum

__all__ = [
    "error_by_radius",
    "heatmap",
    "network",
    "spectrum",
    "superpixels",
    "text",
    "trade_off",
]

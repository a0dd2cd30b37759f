"""Nets of torchvision, of ultralytics and more of transformers for scripts/catalogue_graphs: what each name builds, and how.

A detector is exported without what follows its heads (boxes that are matched, sorted and left out): images go in, what the heads
say of every place comes out. Images come in the size that the library states for the weights it publishes.
"""

from __future__ import annotations

import typing

Json = typing.Any
LIBRARIES = ("torchvision", "ultralytics")
PICTURE = {"pixel_values": ("b", 3, 0, 0)}
AUX = {"aux_loss": True, "num_classes": 21, "weights_backbone": None}

#: name: (function of torchvision.models, its arguments, edge of an image)
TORCHVISION: dict[str, tuple[str, Json, int]] = {
    "resnext-50-32x4d": ("resnext50_32x4d", {}, 224),
    "resnext-101-32x8d": ("resnext101_32x8d", {}, 224),
    "resnext-101-64x4d": ("resnext101_64x4d", {}, 224),
    "wide-resnet-50-2": ("wide_resnet50_2", {}, 224),
    "wide-resnet-101-2": ("wide_resnet101_2", {}, 224),
    **{f"regnet-y-{size}": (f"regnet_y_{size}", {}, 224) for size in ("400mf", "8gf", "16gf", "32gf")},
    "alexnet": ("alexnet", {}, 224),
    "vgg16": ("vgg16", {}, 224),
    "vgg19": ("vgg19", {}, 224),
    "densenet-121": ("densenet121", {}, 224),
    "densenet-201": ("densenet201", {}, 224),
    "inception-v3": ("inception_v3", {"aux_logits": True, "init_weights": False}, 299),
    "mobilenet-v3-large": ("mobilenet_v3_large", {}, 224),
    "mobilenet-v3-small": ("mobilenet_v3_small", {}, 224),
    "shufflenet-v2-1.0": ("shufflenet_v2_x1_0", {}, 224),
    "squeezenet-1.1": ("squeezenet1_1", {}, 224),
    "efficientnet-v2-s": ("efficientnet_v2_s", {}, 384),
    "efficientnet-v2-m": ("efficientnet_v2_m", {}, 480),
    "efficientnet-v2-l": ("efficientnet_v2_l", {}, 480),
    "fcn-resnet-50": ("segmentation.fcn_resnet50", AUX, 520),
    "fcn-resnet-101": ("segmentation.fcn_resnet101", AUX, 520),
    "deeplabv3-resnet-50": ("segmentation.deeplabv3_resnet50", AUX, 520),
    "deeplabv3-resnet-101": ("segmentation.deeplabv3_resnet101", AUX, 520),
    "ssd300-vgg16": ("detection.ssd300_vgg16", {"weights_backbone": None}, 300),
    "retinanet-resnet-50-fpn": ("detection.retinanet_resnet50_fpn", {"weights_backbone": None}, 800),
}  # fmt: skip

#: name: (yaml of ultralytics, edge of an image)
YOLO = {
    **{f"yolov5{size}u": (f"yolov5{size}", 640) for size in "nsmlx"},
    **{f"yolov8{size}": (f"yolov8{size}", 640) for size in "nsmlx"},
    **{f"yolo11{size}": (f"yolo11{size}", 640) for size in "nsmlx"},
    **{f"yolo26{size}": (f"yolo26{size}", 640) for size in "nsmlx"},
}

TEXT = {"input_ids": ("b", "s", "int64")}
CONVNEXT = {"tiny": ([3, 3, 9, 3], 96), "base": ([3, 3, 27, 3], 128), "large": ([3, 3, 27, 3], 192), "huge": ([3, 3, 27, 3], 352)}
EFFICIENT = {1: (1280, 1.0, 1.1, 240, [16]), 2: (1408, 1.1, 1.2, 260, [5, 8, 16]), 3: (1536, 1.2, 1.4, 300, [5, 18]), 4: (1792, 1.4, 1.8, 380, [6]),
             5: (2048, 1.6, 2.2, 456, [13, 27]), 6: (2304, 1.8, 2.6, 528, [31]), 7: (2560, 2.0, 3.1, 600, [18])}  # fmt: skip


def efficient(hidden: int, wide: float, deep: float, edge: int, padding: list[int]) -> Json:
    return {"num_labels": 1000, "hidden_dim": hidden, "width_coefficient": wide, "depth_coefficient": deep, "image_size": edge, "depthwise_padding": padding}


TRANSFORMERS: dict[str, tuple[str, Json, Json, int]] = {
    "yolos-tiny": ("YolosForObjectDetection", {"num_labels": 91, "hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3,
                                               "image_size": [800, 1333], "use_mid_position_embeddings": False}, {"pixel_values": ("b", 3, 800, 1333)}, 0),
    "yolos-small": ("YolosForObjectDetection", {"num_labels": 91, "hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6},
                    {"pixel_values": ("b", 3, 512, 864)}, 0),
    "yolos-base": ("YolosForObjectDetection", {"num_labels": 91, "image_size": [800, 1344]}, {"pixel_values": ("b", 3, 800, 1344)}, 0),
    "owlvit-base-patch32": ("OwlViTForObjectDetection", {}, {"input_ids": ("b", 16, "int64"), "pixel_values": ("b", 3, 768, 768)}, 0),
    "owlv2-base-patch16": ("Owlv2ForObjectDetection", {"vision_config": {"image_size": 960, "patch_size": 16}},
                           {"input_ids": ("b", 16, "int64"), "pixel_values": ("b", 3, 960, 960)}, 0),
    "parakeet-ctc-0.6b": ("ParakeetForCTC", {}, {"input_features": ("b", 1000, 80)}, 0),
    "nomic-embed-text-v1.5": ("NomicBertModel", {}, TEXT, 0),
    "jina-embeddings-v3": ("JinaEmbeddingsV3Model", {}, TEXT, 0),
    "gte-multilingual-base": ("GteModel", {}, TEXT, 0),
    "eurobert-210m": ("EuroBertModel", {}, TEXT, 0),
    "timesfm-2.0-500m": ("TimesFmModel", {}, {"past_values": ("b", 2048, "float32"), "past_values_padding": ("b", 2048, "int64"), "freq": ("b", 1, "int64")}, 0),
    **{f"convnextv2-{name}": ("ConvNextV2ForImageClassification", {"num_labels": 1000, "depths": deep, "hidden_sizes": [wide << i for i in range(4)]}, PICTURE, 224)
       for name, (deep, wide) in CONVNEXT.items()},
    **{f"efficientnet-b{i}": ("EfficientNetForImageClassification", efficient(*sizes), PICTURE, sizes[3]) for i, sizes in EFFICIENT.items()},
}  # fmt: skip

MODELS: dict[str, tuple[str, str, Json, Json, int]] = {
    **{name: ("transformers", *said) for name, said in TRANSFORMERS.items()},
    **{name: ("torchvision", kind, config, PICTURE, edge) for name, (kind, config, edge) in TORCHVISION.items()},
    **{name: ("ultralytics", kind, {}, PICTURE, edge) for name, (kind, edge) in YOLO.items()},
}


def built(library: str, kind: str, config: Json) -> Json:
    import torch

    class Net(torch.nn.Module):
        def __init__(self, net: Json) -> None:
            super().__init__()
            self.net = net

        def forward(self, pixel_values: Json) -> Json:
            return self.net(pixel_values)

    class Detector(torch.nn.Module):
        def __init__(self, net: Json) -> None:
            super().__init__()
            self.backbone, self.head = net.backbone, net.head

        def forward(self, pixel_values: Json) -> Json:
            return self.head(list(self.backbone(pixel_values).values()))

    if library == "ultralytics":
        from ultralytics.nn.tasks import DetectionModel

        with torch.device("cpu"):  # it looks at what it makes of a small image
            net = DetectionModel(f"{kind}.yaml", verbose=False)
        return Net(net.to("meta"))
    import torchvision

    place = torchvision.models
    for part in kind.split("."):
        place = getattr(place, part)
    with torch.device("cpu" if kind.startswith("regnet") else "meta"):  # it looks at the widths that it makes
        net = place(weights=None, **config).to("meta")
    if not kind.startswith("detection."):
        return Net(net)
    if "resnet" in kind:
        frozen(net.backbone.body)
    return Detector(net)


def said(library: str, made: Json) -> Json:
    """All that a net says of its images, side by side: one loss over it gives every head its gradient. Ultralytics' heads hand on
    what they were given, too, which has four axes."""
    import torch

    found = [each for each in torch.utils._pytree.tree_leaves(made) if library != "ultralytics" or each.dim() == 3]
    return torch.cat([each.flatten(1) for each in found], 1) if len(found) > 1 else found[0]


def frozen(body: Json) -> None:
    """As torchvision does with a backbone that was trained before: batch norms are fixed, and so are the first layers."""
    import torch
    import torchvision

    for module in list(body.modules()):
        for name, inner in list(module.named_children()):
            if isinstance(inner, torch.nn.BatchNorm2d):
                setattr(module, name, torchvision.ops.misc.FrozenBatchNorm2d(inner.num_features).to("meta"))
    for name, weight in body.named_parameters():
        if name.startswith(("conv1", "layer1")):
            weight.requires_grad_(False)

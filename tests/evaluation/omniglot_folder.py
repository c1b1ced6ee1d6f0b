#!/usr/bin/python3
"""Writes images in an array as a folder by class, for `privatemail evaluate --images`.

usage: omniglot_folder.py IMAGES.npy LABELS.npy FOLDER

IMAGES: n x height x width, uint8; LABELS: n integers. A script and not a test: the data is not part of the project.
"""
import os
import sys

import numpy as np


def main():
    images, labels, folder = np.load(sys.argv[1]), np.load(sys.argv[2]), sys.argv[3]
    digits = len(str(labels.max()))
    for i, (image, label) in enumerate(zip(images, labels)):
        of_class = os.path.join(folder, f"{label:0{digits}d}")
        os.makedirs(of_class, exist_ok=True)
        with open(os.path.join(of_class, f"{i:06d}.pgm"), "wb") as file:
            file.write(b"P5\n%d %d\n255\n" % image.shape[::-1] + image.tobytes())
    print(f"{len(images)} images in {folder}")


if __name__ == "__main__":
    main()

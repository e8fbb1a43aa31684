"""An engine for tests on a real device: PyTorch behind the orders of the stand-in's engine.py."""

import sys

import torch


def main() -> None:
    """``allocate BYTES`` and ``step`` answer 0, or what the device said; ``free`` its bytes."""
    device = torch.device("cuda:0")
    square = torch.ones((256, 256), device=device)
    kept = []
    for line in sys.stdin:
        try:
            match line.split():
                case ["allocate", count]:
                    kept.append(torch.empty(int(count), dtype=torch.uint8, device=device))
                    answer = "0"
                case ["step"]:
                    (square @ square).sum()
                    torch.cuda.synchronize()
                    answer = "0"
                case ["free"]:
                    answer = str(torch.cuda.mem_get_info()[0])
                case _:
                    answer = line.strip()
        except torch.OutOfMemoryError:
            answer = "2"
        except RuntimeError as error:
            answer = str(error).splitlines()[0]
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


main()

# SPDX-License-Identifier: MIT
"""PyTorch: round trips, scalars, non_blocking copies, pinned batches, and a small training."""
from common import SKIP, Timer, arrays, checksum, need

torch = need("torch")
if not torch.cuda.is_available():
    print("skipped: no GPU")
    raise SystemExit(SKIP)
torch.manual_seed(7)
torch.use_deterministic_algorithms(True, warn_only=True)

with Timer("round trips"):
    for i, a in enumerate(arrays()):
        x = torch.from_numpy(a).cuda()
        checksum(f"cpu {i}", x.cpu().numpy())
        y = torch.from_numpy(a).to("cuda", non_blocking=True)
        checksum(f"non_blocking {i}", (y + 1).to("cpu").numpy())
        print("checksum item", x.flatten()[-1].item())

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    big = torch.arange(8 << 20, dtype=torch.float32).cuda() * 2
side.synchronize()
checksum("side stream", big.cpu().numpy())

data = torch.utils.data.TensorDataset(torch.arange(65536, dtype=torch.float32).reshape(64, 1024))
loader = torch.utils.data.DataLoader(data, batch_size=16, num_workers=2, pin_memory=True)
for (batch,) in loader:
    checksum("batch", (batch.cuda(non_blocking=True) * 3).cpu().numpy())

with Timer("training"):
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.arange(256 * 256, dtype=torch.float32).reshape(256, 256) / 65536
    for step in range(20):
        optimizer.zero_grad()
        loss = (model(inputs.cuda()) - 1).square().mean()
        loss.backward()
        optimizer.step()
    print(f"checksum loss {loss.item():.4e}")

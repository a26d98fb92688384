"""Tensors of the device that other processes read where they lie (cudaIpc)."""
import torch
import torch.multiprocessing as mp

TENSORS, WORKERS = 40, 2


def work(asked, answered):
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda().eval()
    with torch.no_grad():
        while (tensor := asked.get()) is not None:
            answered.put(net(tensor).argmax(1).cpu().tolist())
            del tensor


if __name__ == '__main__':
    mp.set_start_method('spawn')
    asked, answered = mp.Queue(4), mp.Queue()
    workers = [mp.Process(target=work, args=(asked, answered)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    kept = []
    for _ in range(TENSORS):
        kept.append(torch.randn(64, 256, device='cuda'))
        asked.put(kept[-1])
    answers = [answered.get() for _ in range(TENSORS)]
    for _ in workers:
        asked.put(None)
    for worker in workers:
        worker.join()
    print('answers', len(answers))

"""What a launch costs with each level of device collection, and what each way of joining device records to calls costs by itself.

On the simulated driver and its CUPTI, which is not the vendor's: the figures tell our own part and the order of the ways, not what
a GPU will show (docs/gpu-results.md is for that). Fastest of many batches, in rounds taken in turn.
"""
import os

from bench import Table, built, harness, run, scratch

ROUNDS, BATCHES, CALLS, PAUSE_US = 3, 25, 2000, 20000
GRAPH_CALLS = 200


def best_of(commands):
    """name → the least ns of all rounds; commands: name → (arguments, environment)."""
    best = {}
    for _ in range(ROUNDS):
        for name, (arguments, env) in commands.items():
            ns = float(run([built('device_calls'), *arguments], env).split()[0])
            best[name] = min(best.get(name, 1e18), ns)
    return best


def show(title, best, base, each=''):
    table = Table(title)
    for name, ns in best.items():
        table.add(name, f'{ns:.0f} ns', '' if name == base else f'+{ns - best[base]:.0f} ns{each}')
    table.show()


def main():
    simgpu, library = harness.places.simgpu, harness.places.library
    base = {'LD_LIBRARY_PATH': simgpu, 'SIMGPU_CALL_TIME': '0', 'SIMGPU_LAUNCH_LATENCY': '0', 'SIMGPU_KERNEL_TIME': '.*=1us'}
    traced = {**base, 'LD_PRELOAD': library, 'GPUTRACE_OUTPUT': os.path.join(scratch.name, 'device-%n')}
    levels = {'untraced': base,
              'library off': {**traced, 'GPUTRACE': '0'},
              'api': {**traced, 'GPUTRACE_COLLECT': 'api'},
              'api outside of its window': {**traced, 'GPUTRACE_COLLECT': 'api', 'GPUTRACE_CAPTURE': 'profiler-api'},
              'api, device outside of its window': {**traced, 'GPUTRACE_COLLECT': 'api,device', 'GPUTRACE_CAPTURE': 'profiler-api'},
              'api, device joined by order': {**traced, 'GPUTRACE_COLLECT': 'api,device', 'SIMGPU_CUPTI': 'layout=12.4'},
              'api, device joined by keys': {**traced, 'GPUTRACE_COLLECT': 'api,device'},
              'api, device, latency': {**traced, 'GPUTRACE_COLLECT': 'api,device,latency'}}
    show(f'device: a launch (fastest of {ROUNDS} x {BATCHES} batches of {CALLS})',
         best_of({name: (['launch', 'none', BATCHES, CALLS, PAUSE_US], env) for name, env in levels.items()}), 'untraced')
    graphs = {name: levels[name] for name in ('untraced', 'api', 'api, device joined by keys')}
    graphs['api, device, graphs node by node'] = {**levels['api, device joined by keys'], 'GPUTRACE_GRAPHS': 'node'}
    show(f'device: a launch of a graph of 20 kernels (fastest of {ROUNDS} x {BATCHES} batches of {GRAPH_CALLS})',
         best_of({name: (['graph', 'none', BATCHES, GRAPH_CALLS, PAUSE_US], env) for name, env in graphs.items()}), 'untraced')
    clients = {'no client of CUPTI': 'none', 'kernel records alone: joined by order': 'kernels', 'API records of launches': 'keys', 'API records of 64 launches in each 1024': 'sparse',
               'the same and external correlation ids': 'external', 'API records of every driver call': 'driver'}
    show('device: ways to join, measured alone (no gputrace)',
         best_of({name: (['launch', client, BATCHES, CALLS, PAUSE_US], base) for name, client in clients.items()}), 'no client of CUPTI')


main()

"""REINFORCE with an environment on the host: an action read back for each of its steps, one step of the optimizer for each episode."""
import numpy
import torch

EPISODES, LENGTH = 10, 80
torch.manual_seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)).cuda()
optimizer = torch.optim.Adam(policy.parameters(), 3e-4)
for _ in range(EPISODES):
    state, chances, rewards = numpy.zeros(8, numpy.float32), [], []
    for _ in range(LENGTH):
        actions = torch.distributions.Categorical(logits=policy(torch.as_tensor(state, device='cuda')))
        action = actions.sample()
        chances.append(actions.log_prob(action))
        for _ in range(20):
            state = numpy.tanh(state * 0.9 + 0.1 * action.item()).astype(numpy.float32)
        rewards.append(float(state.sum()))
    returns = torch.tensor(numpy.cumsum(rewards[::-1])[::-1].copy(), dtype=torch.float32).cuda()
    loss = -(torch.stack(chances) * (returns - returns.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print('steps', EPISODES)

"""Lightning's Trainer: fit with a validation loop, mixed precision, a checkpoint."""
import tempfile
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings('ignore')


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log('loss', torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


lightning.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(64, 32), torch.randint(0, 4, (64,)))
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(max_epochs=2, accelerator='gpu', devices=1, precision='bf16-mixed', default_root_dir=folder, logger=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Classifier(), DataLoader(data, batch_size=16), DataLoader(data, batch_size=32))
torch.cuda.synchronize()
print('epochs', trainer.current_epoch, 'steps', trainer.global_step)

"""What comparisons give back."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Difference:
    """Two that should agree and do not: what was compared, and how they differ, in one line."""
    what: str
    text: str

    def __str__(self):
        return f'{self.what}: {self.text}'

"""Sparse coding with a weight-tied autoencoder: certified supports, gradients, dictionaries by descent."""

from unweave.sparse_coding.autoencoder import (
    Criticality,
    ProxyGradient,
    autoencoder_gradient,
    autoencoder_loss,
    autoencoder_network,
    loss_slice,
    measure_criticality,
    proxy_gradient,
)
from unweave.sparse_coding.certificate import (
    SupportCertificate,
    SupportRates,
    certify_support_recovery,
    support_rates,
)
from unweave.sparse_coding.criticality import CriticalityHypotheses, Interval, criticality_hypotheses
from unweave.sparse_coding.descent import (
    AutoencoderFit,
    AutoencoderOptions,
    DictionaryFit,
    atom_cosines,
    refine_dictionary,
    sparse_autoencoder_fit,
    training_bias,
)
from unweave.sparse_coding.generative import (
    SparseModel,
    coherence,
    gaussian_dictionary,
    gen_sparse_model,
    near_dictionary,
    spikes_and_waves,
)

__all__ = [
    "AutoencoderFit",
    "AutoencoderOptions",
    "Criticality",
    "CriticalityHypotheses",
    "DictionaryFit",
    "Interval",
    "ProxyGradient",
    "SparseModel",
    "SupportCertificate",
    "SupportRates",
    "atom_cosines",
    "autoencoder_gradient",
    "autoencoder_loss",
    "autoencoder_network",
    "certify_support_recovery",
    "coherence",
    "criticality_hypotheses",
    "gaussian_dictionary",
    "gen_sparse_model",
    "loss_slice",
    "measure_criticality",
    "near_dictionary",
    "proxy_gradient",
    "refine_dictionary",
    "sparse_autoencoder_fit",
    "spikes_and_waves",
    "support_rates",
    "training_bias",
]

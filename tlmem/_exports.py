"""Which module each public name stands in. ``__init__.pyi`` tells type checkers the same."""

_NAMES = {
    "compiler.compiled": "compile",
    "compiler.errors": "NotCompilable",
    "compiler.explain": "Explanation explain",
    "fleets.fleet": "Fleet fleet",
    "recorder.linking": "get_include get_library",
    "notebook": "load_ipython_extension",
    "recorder": "Recorder mark snapshot",
    "planning.planner": "BadBuffer Plan plan",
    "recording.reader": "Recording read",
    "runtime.autograd.checkpointing": "checkpoint recompute",
    "runtime.device": (
        "Device LimitDevice device devices limit_device tl_dump_gpu_pool_stats "
        "tl_get_gpu_free_bytes tl_get_gpu_free_count tl_get_gpu_pool_hit_rate "
        "tl_get_gpu_total_allocated_bytes"
    ),
    "runtime.tensors.elementwise": (
        "absolute add bitwise_and bitwise_or bitwise_xor clip cos divide equal exp floor_divide "
        "greater greater_equal invert isfinite isnan less less_equal log logical_and logical_not "
        "logical_or logical_xor maximum minimum multiply negative not_equal power relu remainder "
        "sigmoid sin softplus sqrt square subtract tanh where"
    ),
    "runtime.errors": (
        "AlreadyPooled AlreadyRegistered BackwardRunning BadSlot DeviceOutOfMemory DoubleFree "
        "InArena InPlaceOnSaved NoFrame NoSuchDevice NotAHolder NotDifferentiable NotInScope "
        "NotRegistered RuntimeMisuse SecondBackward SizeOverflow StaleSlot StillHeld "
        "UnbalancedScope UseAfterFree UseAfterMove WrongDevice WrongDtype WrongShape WrongTape"
    ),
    "runtime.tensors.factories": (
        "arange empty empty_like full ones ones_like randn tensor zeros zeros_like"
    ),
    "runtime.ownership.frame": (
        "Frame SlotBuffer arena_empty frame framed function_enter function_exit get_buffer"
    ),
    "runtime.tensors.functions": (
        "cross_entropy dropout embedding gelu layer_norm linear scatter_add"
    ),
    "runtime.autograd.grad_mode": "enable_grad is_grad_enabled no_grad",
    "runtime.ownership.holders": "acquire move release release_safe",
    "runtime.tensors.interop": "from_dlpack from_numpy",
    "runtime.tensors.linalg": "dot matmul",
    "runtime.ownership.parameters": (
        "drop_parameter parameter parameter_names parameters register_parameter"
    ),
    "runtime.ownership.pool": "PoolableTensor PoolStats TensorPool global_pool",
    "runtime.tensors.reductions": (
        "all any argmax argmin cumsum log_softmax max mean min prod softmax std sum var"
    ),
    "runtime.ownership.representation": (
        "BatchableTensorRepresentation FixedShape TensorRepresentation from_batched_tensor "
        "from_tensor register_representation tensor_shape to_batched_tensor to_tensor"
    ),
    "runtime.ownership.scope": (
        "Scope ScopeStats ScopedTensor current_scope_id escape in_scope promote register "
        "register_in run run_async scope scope_depth scope_stats scope_tensor_count "
        "unregister"
    ),
    "runtime.tensors.shaping": (
        "broadcast_to concat permute reshape squeeze stack swapaxes transpose unsqueeze"
    ),
    "runtime.autograd.training_loop": "steps",
    "runtime.ownership.struct": "Struct struct",
    "runtime.ownership.vector": "Vec vec",
    "runtime.autograd.tape": "OpStats Tape TapeStats backward clear_grads detach tape zero_grad",
    "runtime.tensors.tensor": "Tensor",
    "runtime.ownership.tensor_scope": "TensorPlatform TensorScope",
    "runtime.autograd.user_ops": "op",
    "runtime.tensors.views": "gather take",
}
MODULE_OF = {name: f"tlmem.{module}" for module, names in _NAMES.items() for name in names.split()}
"""Public name -> module."""
MODULES = ("optim",)
"""Public modules beside this one."""
